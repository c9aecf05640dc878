// SPDX-License-Identifier: Apache-2.0
// FuseElementwise: fuses element-wise operators whose intermediates nobody else reads into one that
// passes over memory once.
//
// In training the fused operator's gradient reads its arguments, while the gradients of its parts
// may read intermediates. So only operators whose arguments some gradient reads anyway are fused:
// then no array lives longer than before, and intermediates are not stored.
#include <algorithm>
#include <map>
#include <set>

#include "mxtrain/base/json.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::executor {
namespace {

constexpr size_t kMostSteps = 16;

using Entry = std::pair<int, int>;  // node, output
Entry KeyOf(NodeEntry e) {
  return {e.node, e.index};
}

class ElementwiseFuser {
 public:
  ElementwiseFuser(const ExecGraph& graph, const BindRequest& request, Runtime& runtime)
      : graph_(graph),
        request_(request),
        runtime_(runtime),
        rewriter_(graph),
        readers_(graph.nodes.size()),
        varies_(graph.nodes.size()),
        taken_(graph.nodes.size()) {
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      const ExecNode& node = graph.nodes[id];
      varies_[id] = node.is_variable() && request.inputs.contains(node.name);
      for (const NodeEntry& e : node.inputs) {
        if (!e) continue;
        readers_[e.node].push_back(static_cast<int>(id));
        if (varies_[e.node]) varies_[id] = true;
      }
    }
    if (request.needs_backward()) FindKept();
  }

  ExecGraph Run() {
    for (int id = static_cast<int>(graph_.nodes.size()); id-- > 0;) {
      std::vector<int> group = GroupThatEndsAt(id);
      if (group.size() < 2 || !KeepsNothingNew(group)) continue;
      for (int member : group) taken_[member] = true;
      groups_[id] = std::move(group);
    }
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      rewriter_.Keep(id);
      if (const auto found = groups_.find(id); found != groups_.end()) Apply(found->second);
    }
    return rewriter_.Finish();
  }

 private:
  // Entries that some gradient reads.
  void FindKept() {
    const auto wanted = WantedGradients(graph_, request_);
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const ExecNode& node = graph_.nodes[id];
      if (node.kind != Node::Kind::kForward ||
          std::find(wanted[id].begin(), wanted[id].end(), true) == wanted[id].end())
        continue;
      std::vector<int> heads, in, out;
      int number = 0;
      for (int i = 0; i < node.num_outputs(); ++i) heads.push_back(number++);
      for (int i = 0; i < node.num_args; ++i) in.push_back(number++);
      for (int i = 0; i < node.num_outputs(); ++i) out.push_back(number++);
      for (int read : node.op->DeclareBackwardDependency(heads, in, out)) {
        const int outputs = node.num_outputs();
        if (read >= outputs + node.num_args)
          kept_.insert({static_cast<int>(id), read - outputs - node.num_args});
        else if (read >= outputs)
          kept_.insert(KeyOf(node.inputs[read - outputs]));
      }
    }
  }

  bool Fits(int id) const {
    const ExecNode& node = graph_.nodes[id];
    if (node.kind != Node::Kind::kForward || taken_[id] ||
        node.op->elementwise() == Elementwise::kNo)
      return false;
    if (node.op->NumOutputs() != 1 || node.num_aux() > 0 ||
        !node.op->ForwardIdentityOption().empty() || AsksForResources(node))
      return false;
    for (int i = 0; i < node.num_args; ++i) {
      const TensorSpec& spec = graph_.spec(node.inputs[i]);
      if (spec.shape != node.specs[0].shape || spec.type != node.specs[0].type) return false;
      if (request_.needs_backward() && !node.op->HasGradient(i)) return false;
    }
    return true;
  }

  // Parts of a fused operator get none.
  bool AsksForResources(const ExecNode& node) const {
    const std::vector<TShape> shapes = ArgumentShapes(graph_, node);
    return !node.op->ForwardResource(shapes).empty() ||
           (request_.needs_backward() && !node.op->BackwardResource(shapes).empty());
  }

  // Whether all readers of the node's result are members, and it is not monitored.
  bool IsInside(int id, const std::vector<int>& members) const {
    for (const NodeEntry& head : graph_.heads) {
      if (head.node == id) return false;
    }
    const auto member = [&](int reader) {
      return std::find(members.begin(), members.end(), reader) != members.end();
    };
    return std::all_of(readers_[id].begin(), readers_[id].end(), member) &&
           std::find(request_.monitored.begin(), request_.monitored.end(), graph_.nodes[id].name) ==
               request_.monitored.end();
  }

  // In topological order. No path leaves the group and re-enters: all readers of intermediates are
  // inside.
  std::vector<int> GroupThatEndsAt(int last) const {
    if (!Fits(last)) return {};
    std::vector<int> members{last};
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t m = 0; m < members.size(); ++m) {
        for (const NodeEntry& e : graph_.nodes[members[m]].inputs) {
          const bool known = std::find(members.begin(), members.end(), e.node) != members.end();
          if (known || members.size() >= kMostSteps || !Fits(e.node) || !IsInside(e.node, members))
            continue;
          if (varies_[e.node] != varies_[last])
            continue;  // what depends only on parameters is not computed in every run
          if (graph_.nodes[e.node].group != graph_.nodes[last].group) continue;
          members.push_back(e.node);
          grown = true;
        }
      }
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  // The group's external inputs, each entry once.
  std::vector<NodeEntry> ArgumentsOf(const std::vector<int>& group) const {
    std::vector<NodeEntry> arguments;
    for (int id : group) {
      for (const NodeEntry& e : graph_.nodes[id].inputs) {
        const bool inside = std::binary_search(group.begin(), group.end(), e.node);
        if (!inside && std::find(arguments.begin(), arguments.end(), e) == arguments.end())
          arguments.push_back(e);
      }
    }
    return arguments;
  }

  bool KeepsNothingNew(const std::vector<int>& group) const {
    if (!request_.needs_backward()) return true;
    for (const NodeEntry& e : ArgumentsOf(group)) {
      if (!graph_.nodes[e.node].is_variable() && !kept_.contains(KeyOf(e))) return false;
    }
    return true;
  }

  void Apply(const std::vector<int>& group) {
    const std::vector<NodeEntry> arguments = ArgumentsOf(group);
    const auto number_of = [&](NodeEntry e) {
      const auto argument = std::find(arguments.begin(), arguments.end(), e);
      if (argument != arguments.end()) return argument - arguments.begin();
      return static_cast<std::ptrdiff_t>(arguments.size()) +
             (std::lower_bound(group.begin(), group.end(), e.node) - group.begin());
    };
    Json steps = Json::array();
    ExecNode fused(graph_.nodes[group.back()]);
    for (int id : group) {
      const ExecNode& node = graph_.nodes[id];
      Json params = Json::object(), in = Json::array();
      for (const auto& [key, value] : node.op->GetParams()) params[key] = value;
      for (const NodeEntry& e : node.inputs) in.push_back(number_of(e));
      steps.push_back({{"op", node.op->TypeString()}, {"params", params}, {"in", in}});
      fused.origins.push_back(node.name);
    }
    fused.op = runtime_.operators().Create(
        "_ElementwiseChain",
        {{"num_args", std::to_string(arguments.size())}, {"steps", steps.dump()}});
    fused.specs = graph_.nodes[group.back()].specs;
    fused.req.assign(1, OpReqType::kWriteTo);
    fused.adds_to.resize(1);
    fused.inputs.clear();
    for (const NodeEntry& e : arguments) fused.inputs.push_back(rewriter_.Map(e));
    fused.num_args = static_cast<int>(arguments.size());

    const std::vector<std::optional<Layout>> layouts(arguments.size());
    std::vector<OpReqType> grad_req;
    if (request_.needs_backward()) grad_req.assign(arguments.size(), OpReqType::kWriteTo);
    const std::vector<const KernelEntry*> entries =
        runtime_.operators().Kernels("_ElementwiseChain", fused.ctx.type);
    if (entries.empty() || !PlanNode(rewriter_.graph(), fused, request_, runtime_, layouts,
                                     grad_req, entries[0]->name.c_str()))
      return;
    rewriter_.Redirect({group.back(), 0}, {rewriter_.Add(std::move(fused)), 0});
  }

  const ExecGraph& graph_;
  const BindRequest& request_;
  Runtime& runtime_;
  Rewriter rewriter_;
  std::vector<std::vector<int>> readers_;  // of each node
  std::vector<bool> varies_;               // depends on an input, so it changes from run to run
  std::vector<bool> taken_;
  std::set<Entry> kept_;
  std::map<int, std::vector<int>> groups_;  // by the last node
};

}  // namespace

ExecGraph FuseElementwise(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  if (!runtime.operators().Has("_ElementwiseChain")) return graph;
  return ElementwiseFuser(graph, request, runtime).Run();
}

}  // namespace mxtrain::executor
