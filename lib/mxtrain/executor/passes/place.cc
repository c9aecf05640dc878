// SPDX-License-Identifier: Apache-2.0
// Place: the group of each node, and with it its device. As in MXNet, an operator without a
// ctx_group follows its first input that has a place, else its readers; a variable its first
// reader.
#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {
namespace {

std::string GroupOf(const Node& node) {
  for (const char* key : {"ctx_group", "__ctx_group__"}) {
    const auto found = node.attrs.find(key);
    if (found != node.attrs.end()) return found->second;
  }
  return "";
}

void CheckGroups(const ExecGraph& graph, const BindRequest& request) {
  std::set<std::string> groups;
  for (const ExecNode& node : graph.nodes) groups.insert(GroupOf(node));
  groups.erase("");
  for (const auto& [group, device] : request.group2ctx) {
    if (groups.contains(group)) continue;
    const std::vector<std::string> known(groups.begin(), groups.end());
    Throw(ErrorKind::kConfig, "group '{}' is placed on {}, but no layer has this ctx_group{}",
          group, device.ToString(),
          known.empty() ? "; give the layers the attribute ctx_group"
                        : format("; the groups are {}", join(known, ", ")));
  }
}

void CheckDevices(const BindRequest& request) {
  const std::vector<Context> devices = request.devices();
  if (devices.size() < 2) return;
  for (const Context device : devices) {
    if (device.type == devices[0].type) continue;
    Throw(ErrorKind::kConfig,
          "groups are placed on {} and {}: the devices of a net must be of one type",
          devices[0].ToString(), device.ToString());
  }
  if (request.amp) {
    Throw(ErrorKind::kConfig,
          "mixed precision in {} is not supported for a net on several devices; train in float32, "
          "or place all groups on {}",
          NameOf(*request.amp), request.ctx.ToString());
  }
  if (request.memory_budget.limits()) {
    Throw(ErrorKind::kConfig,
          "a memory budget is not supported for a net on several devices; remove it, or place all "
          "groups on {}",
          request.ctx.ToString());
  }
}

class DevicePlacer {
 public:
  DevicePlacer(ExecGraph* graph, const BindRequest& request)
      : nodes_(graph->nodes), request_(request), placed_(nodes_.size()) {}

  void Run() {
    const int n = static_cast<int>(nodes_.size());
    for (int id = 0; id < n; ++id) {
      if (const std::string group = GroupOf(nodes_[id]); !group.empty()) PlaceIn(group, id);
    }
    for (int id = 0; id < n; ++id) FollowInputs(id);
    for (int id = n; id-- > 0;) {
      if (placed_[id]) PlaceInputs(id, /*variables=*/false);
    }
    for (int id = 0; id < n; ++id) {
      if (!nodes_[id].is_variable()) PlaceInputs(id, /*variables=*/true);
    }
  }

 private:
  void PlaceIn(const std::string& group, int id) {
    const auto device = request_.group2ctx.find(group);
    nodes_[id].group = group;
    nodes_[id].ctx = device == request_.group2ctx.end() ? request_.ctx : device->second;
    placed_[id] = true;
  }

  void FollowInputs(int id) {
    if (placed_[id]) return;
    for (const NodeEntry& e : nodes_[id].inputs) {
      if (!placed_[e.node]) continue;
      nodes_[id].PlaceBeside(nodes_[e.node]);
      placed_[id] = true;
      return;
    }
  }

  void PlaceInputs(int id, bool variables) {
    for (const NodeEntry& e : nodes_[id].inputs) {
      if (placed_[e.node] || nodes_[e.node].is_variable() != variables) continue;
      nodes_[e.node].PlaceBeside(nodes_[id]);
      placed_[e.node] = true;
    }
  }

  std::vector<ExecNode>& nodes_;
  const BindRequest& request_;
  std::vector<bool> placed_;
};

void CheckAuxiliaries(const ExecGraph& graph) {
  for (const ExecNode& node : graph.nodes) {
    if (node.kind != Node::Kind::kForward) continue;
    for (size_t i = static_cast<size_t>(node.num_args); i < node.inputs.size(); ++i) {
      const ExecNode& state = graph.nodes[node.inputs[i].node];
      if (state.ctx == node.ctx) continue;
      Throw(ErrorKind::kConfig,
            "{} is placed on {}, but its auxiliary state '{}' on {}: put them, and all other users "
            "of the state, into one group",
            Describe(node), node.ctx.ToString(), state.name, state.ctx.ToString());
    }
  }
}

}  // namespace

ExecGraph Place(ExecGraph graph, const BindRequest& request) {
  CheckGroups(graph, request);
  CheckDevices(request);
  DevicePlacer(&graph, request).Run();
  CheckAuxiliaries(graph);
  return graph;
}

}  // namespace mxtrain::executor
