// SPDX-License-Identifier: Apache-2.0
// Recompute: trades time for memory. If the arena exceeds its budget, some results of the forward
// pass are not kept but recomputed in the backward pass (Chen et al. 2016, arXiv 1604.06174). The
// same kernels run on the same bytes, so results are bit-identical.
#include "mxtrain/executor/internal/recompute.h"

#include <algorithm>
#include <span>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/post_order.h"
#include "mxtrain/executor/internal/rewriter.h"

namespace mxtrain::executor {
namespace {

constexpr int kSteps = 12;  // halvings

class CopyMaker {
 public:
  CopyMaker(const ExecGraph& graph, const std::vector<bool>& again)
      : graph_(graph),
        again_(again),
        rewriter_(graph),
        first_run_(graph.nodes.size(), -1),
        made_(graph.nodes.size()),
        states_(graph.nodes.size()) {}

  ExecGraph Run() {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      const ExecNode& node = graph_.nodes[id];
      if (node.backward_pass) {
        MakeFor(node.inputs);
      } else if (again_[id] && node.kind == Node::Kind::kForward) {
        for (int i = node.num_args; i < static_cast<int>(node.inputs.size()); ++i)
          states_[id].push_back(Snapshot(node.inputs[i]));
      }
      first_run_[id] = rewriter_.Keep(id);
      if (node.forward >= 0)
        rewriter_.graph().nodes[first_run_[id]].forward = first_run_[node.forward];
    }
    return rewriter_.Finish();
  }

 private:
  // A copy of an auxiliary state before the first run, for the second run to read, and change
  // without effect.
  NodeEntry Snapshot(NodeEntry state) {
    const NodeEntry now = rewriter_.Map(state);
    ExecNode node;
    node.kind = Node::Kind::kReorder;
    node.name = rewriter_.graph().nodes[now.node].name + "_copy";
    node.PlaceBeside(rewriter_.graph().nodes[now.node]);
    node.inputs = {now};
    node.specs = {rewriter_.spec(now)};
    node.req = {OpReqType::kWriteTo};
    node.adds_to.resize(1);
    return {rewriter_.Add(std::move(node)), 0};
  }

  // Copies of the nodes that are executed again for these entries, of those that they need first.
  void MakeFor(std::span<const NodeEntry> entries) {
    std::vector<int> roots;
    for (const NodeEntry& e : entries) roots.push_back(e.node);
    PostOrder(
        roots, [this](int id) { return graph_.nodes[id].inputs.size(); },
        [this](int id, size_t i) { return graph_.nodes[id].inputs[i].node; },
        [this](int id) { return id >= 0 && again_[id] && std::exchange(made_[id], 1) == 0; },
        [this](int id) { Make(id); });
  }

  void Make(int id) {
    ExecNode copy = graph_.nodes[id];
    copy.name += "_again";
    for (NodeEntry& e : copy.inputs) e = rewriter_.Map(e);
    std::copy(states_[id].begin(), states_[id].end(),
              copy.inputs.end() - static_cast<std::ptrdiff_t>(states_[id].size()));
    copy.forward = first_run_[id];
    copy.backward_pass = true;
    const int now = rewriter_.Add(std::move(copy));
    for (int i = 0; i < static_cast<int>(graph_.nodes[id].specs.size()); ++i)
      rewriter_.Redirect({id, i}, {now, i});
  }

  const ExecGraph& graph_;
  const std::vector<bool>& again_;
  Rewriter rewriter_;
  std::vector<int> first_run_;  // [node]: in the new graph
  std::vector<char> made_;
  // [node]: its auxiliary states for the second run, in the new graph.
  std::vector<std::vector<NodeEntry>> states_;
};

double CostOfCopies(const ExecGraph& graph) {
  double cost = 0;
  for (const ExecNode& node : graph.nodes) {
    if (node.kind == Node::Kind::kForward && node.forward >= 0) cost += node.plan->cost;
  }
  return cost;
}

// Tries choices and keeps the cheapest that fits.
class BudgetSearch {
 public:
  BudgetSearch(const ExecGraph& graph, const MemoryPlan& plain, int64_t budget)
      : graph_(graph), plain_(plain.lower_bound), budget_(budget), choice_(graph, plain) {}

  void Bisect() { Bisect(budget_); }

  // The least budget that suffices. A function of the graph, so that this budget suffices and one
  // byte less does not: the last bisection has not found it. Stops early once the budget does.
  int64_t Least() {
    int64_t least = Sweep();
    while (!found()) {
      const int64_t smaller = Bisect(least - 1);
      if (smaller >= least) break;
      least = smaller;
    }
    return least;
  }
  bool found() const { return !best_.nodes.empty(); }
  ExecGraph Take() { return std::move(best_); }

 private:
  static constexpr int64_t kNone = -1;

  // Bisects between estimates whose peaks exceed the target and those that do not, starting with
  // the target itself. Returns the smallest peak.
  int64_t Bisect(int64_t target) {
    int64_t fits = 0, too_much = plain_, least = plain_;
    for (int step = 0; step < kSteps; ++step) {
      const int64_t aim = step == 0 ? target : fits + (too_much - fits) / 2;
      const int64_t peak = Try(aim);
      if (peak != kNone) least = std::min(least, peak);
      (peak == kNone || peak <= target ? fits : too_much) = aim;
    }
    return least;
  }

  // Tries upwards from the smallest feasible estimate. Returns the smallest peak.
  int64_t Sweep() {
    int64_t none = 0, some = plain_;
    for (int step = 0; step < kSteps; ++step) {
      const int64_t aim = none + (some - none) / 2;
      (choice_.Within(aim).empty() ? none : some) = aim;
    }
    int64_t least = plain_;
    for (const int percent : {100, 101, 102, 105, 110, 115, 120, 130, 140, 150, 175, 200}) {
      const int64_t peak = Try(some / 100 * percent);
      if (peak != kNone) least = std::min(least, peak);
    }
    return least;
  }

  // The peak of the graph for the choice with this estimate; kNone if there is no choice.
  int64_t Try(int64_t aim) {
    const std::vector<bool> again = choice_.Within(aim);
    if (again.empty()) return kNone;
    ExecGraph tried = RunAgain(graph_, again);
    const int64_t peak = PlanLifetimes(tried).lower_bound;
    const double cost = CostOfCopies(tried);
    if (peak <= budget_ && (!found() || cost < best_cost_)) {
      best_cost_ = cost;
      best_ = std::move(tried);
    }
    return peak;
  }

  const ExecGraph& graph_;
  const int64_t plain_, budget_;
  const RecomputeChoice choice_;
  ExecGraph best_;
  double best_cost_ = 0;
};

}  // namespace

std::vector<bool> Repeatable(const ExecGraph& graph) {
  std::vector<bool> repeatable(graph.nodes.size());
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const ExecNode& node = graph.nodes[id];
    if (node.backward_pass || node.precomputed) continue;
    repeatable[id] = node.kind == Node::Kind::kReorder || node.kind == Node::Kind::kForward;
  }
  for (const NodeEntry& head : graph.heads) repeatable[head.node] = false;
  return repeatable;
}

ExecGraph RunAgain(const ExecGraph& graph, const std::vector<bool>& again) {
  return CopyMaker(graph, again).Run();
}

ExecGraph Recompute(ExecGraph graph, const BindRequest& request) {
  if (!request.memory_budget.limits()) return graph;
  const MemoryPlan plain = PlanLifetimes(graph);
  const int64_t budget = request.memory_budget.Of(plain.lower_bound);
  int64_t least = plain.lower_bound;
  if (least <= budget) return graph;
  if (graph.first_backward >= 0) {
    BudgetSearch search(graph, plain, budget);
    search.Bisect();
    if (!search.found()) least = search.Least();
    if (search.found()) return search.Take();
  }
  const int64_t arenas = request.memory_budget.arenas;
  Throw(ErrorKind::kConfig,
        "a memory budget of {} cannot be met: the net needs at least {} bytes ({}) with "
        "recomputation, {} without; raise memory_budget or lower the batch size",
        FormatBytes(arenas * budget), arenas * least, FormatBytes(arenas * least),
        FormatBytes(arenas * plain.lower_bound));
}

}  // namespace mxtrain::executor
