// SPDX-License-Identifier: Apache-2.0
// ChooseOrder: depth first, visiting at each node first the input whose computation needs the most
// bytes beyond its result, since earlier results must be held meanwhile. On a tree no depth-first
// order needs less (Sethi and Ullman 1970; Liu 1986). On other graphs it is a heuristic, used only
// if its lower bound is below that of the existing order.
#include "mxtrain/executor/internal/order.h"

#include <algorithm>
#include <map>
#include <utility>

#include "mxtrain/base/post_order.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::executor {
namespace {

// Orders the forward pass; the backward pass keeps its order.
class DepthFirst {
 public:
  explicit DepthFirst(const ExecGraph& graph)
      : graph_(graph),
        before_(graph.nodes.size()),
        needed_(graph.nodes.size()),
        left_(graph.nodes.size()) {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      if (!graph_.nodes[id].backward_pass) Weigh(id);
    }
  }

  // Nodes in their new order: what the heads need, then the rest of the forward pass, then the
  // backward pass.
  std::vector<int> Run() {
    std::vector<int> roots, backward, order;
    for (const NodeEntry& head : graph_.heads) roots.push_back(head.node);
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id)
      (graph_.nodes[id].backward_pass ? backward : roots).push_back(id);
    std::vector<char> seen(graph_.nodes.size());
    PostOrder(
        roots, [this](int id) { return before_[id].size(); },
        [this](int id, size_t i) { return before_[id][i]; },
        [&seen](int id) { return std::exchange(seen[id], 1) == 0; },
        [&order](int id) { order.push_back(id); });
    order.insert(order.end(), backward.begin(), backward.end());
    return order;
  }

 private:
  // The bytes that a node with its ancestors needs, assuming a tree, and those it leaves.
  void Weigh(int id) {
    const ExecNode& node = graph_.nodes[id];
    std::vector<int>& before = before_[id];
    for (const NodeEntry& e : node.inputs) {
      before.push_back(e.node);
      if (graph_.nodes[e.node].kind != Node::Kind::kAux) continue;
      // Users of an auxiliary state keep their order: each may change it.
      const auto [last, first_user] = last_user_.try_emplace(e.node, id);
      if (!first_user) before.push_back(std::exchange(last->second, id));
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    std::erase(before, id);
    std::stable_sort(before.begin(), before.end(), [this](int a, int b) {
      return needed_[a] - left_[a] > needed_[b] - left_[b];
    });
    if (node.is_variable()) return;

    int64_t held = 0;
    for (int b : before) {
      needed_[id] = std::max(needed_[id], held + needed_[b]);
      held += left_[b];
    }
    for (const TensorSpec& spec : node.specs) left_[id] += spec.Bytes();
    needed_[id] =
        std::max(needed_[id], held + left_[id] + (node.plan ? node.plan->forward_workspace : 0));
  }

  const ExecGraph& graph_;
  std::vector<std::vector<int>> before_;  // [node]: its predecessors, in order of visits
  std::vector<int64_t> needed_, left_;    // [node]: bytes
  std::map<int, int> last_user_;          // of an auxiliary state
};

}  // namespace

ExecGraph ChooseOrder(ExecGraph graph) {
  Rewriter rewriter(graph);
  for (int id : DepthFirst(graph).Run()) rewriter.Keep(id);
  ExecGraph ordered = rewriter.Finish();
  return PlanLifetimes(ordered).lower_bound < PlanLifetimes(graph).lower_bound ? std::move(ordered)
                                                                               : std::move(graph);
}

}  // namespace mxtrain::executor
