// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/node_order.h"

#include <algorithm>
#include <map>

namespace mxtrain::onnx {
namespace {

class NodeOrder {
 public:
  explicit NodeOrder(const std::vector<ModelNode>& nodes) : nodes_(nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const std::string& output : nodes[i].outputs) makers_.try_emplace(output, i);
    }
  }

  std::vector<const ModelNode*> Run() {
    const bool sorted = IsSorted();
    std::vector<const ModelNode*> order;
    for (const ModelNode& node : nodes_) order.push_back(&node);
    if (sorted) return order;
    std::vector<const ModelNode*> made;
    state_.assign(nodes_.size(), kNew);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!Place(i, &made)) return order;
    }
    return made;
  }

 private:
  enum State : char { kNew, kOpen, kPlaced };

  bool IsSorted() const {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      bool sorted = true;
      ForEachRead(nodes_[i], [&](const std::string& name) {
        const auto maker = makers_.find(name);
        sorted = sorted && (maker == makers_.end() || maker->second < i);
      });
      if (!sorted) return false;
    }
    return true;
  }

  std::vector<size_t> Before(size_t i) const {
    std::vector<size_t> before;
    ForEachRead(nodes_[i], [&](const std::string& name) {
      const auto maker = makers_.find(name);
      if (maker != makers_.end()) before.push_back(maker->second);
    });
    return before;
  }

  // The node behind all that it reads; false: it depends on itself. A graph may be deeper than the
  // stack.
  bool Place(size_t first, std::vector<const ModelNode*>* made) {
    struct Frame {
      size_t node;
      std::vector<size_t> before;
      size_t next = 0;
    };
    if (state_[first] == kPlaced) return true;
    std::vector<Frame> stack{{first, Before(first)}};
    state_[first] = kOpen;
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.before.size()) {
        state_[top.node] = kPlaced;
        made->push_back(&nodes_[top.node]);
        stack.pop_back();
        continue;
      }
      const size_t before = top.before[top.next++];
      if (state_[before] == kOpen) return false;
      if (state_[before] == kPlaced) continue;
      state_[before] = kOpen;
      stack.push_back({before, Before(before)});
    }
    return true;
  }

  const std::vector<ModelNode>& nodes_;
  std::map<std::string, size_t> makers_;  // by output
  std::vector<State> state_;
};

}  // namespace

std::vector<const ModelNode*> InOrder(const std::vector<ModelNode>& nodes) {
  return NodeOrder(nodes).Run();
}

std::vector<const ModelNode*> Needed(const std::vector<const ModelNode*>& nodes,
                                     std::set<std::string>* wanted) {
  std::vector<const ModelNode*> needed;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool is_read = std::ranges::any_of((*node)->outputs, [wanted](const std::string& output) {
      return !output.empty() && wanted->contains(output);
    });
    if (!is_read) continue;
    needed.push_back(*node);
    ForEachRead(**node, [wanted](const std::string& name) { wanted->insert(name); });
  }
  std::ranges::reverse(needed);
  return needed;
}

}  // namespace mxtrain::onnx
