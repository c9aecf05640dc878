// Recompute: trades time for memory. When the arena is over its budget, some of what the forward pass made is not kept for the backward pass
// but made again there (Chen et al. 2016, arXiv 1604.06174). The same kernels run on the same bytes, so results are the same bit for bit.
#include "mxtrain/executor/passes/recompute.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/passes/rewriter.h"

namespace mxtrain::executor {
namespace {

// Halvings of the distance between what is too much and what fits; each plans the lifetimes of a graph.
constexpr int kSteps = 12;

class CopyMaker {
 public:
  CopyMaker(const ExecGraph& graph, const std::vector<bool>& again)
      : graph_(graph), again_(again), rewriter_(graph), first_run_(graph.nodes.size(), -1), made_(graph.nodes.size()),
        states_(graph.nodes.size()) {}

  ExecGraph Run() {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      const ExecNode& node = graph_.nodes[id];
      if (node.backward_pass) {
        for (const NodeEntry& e : node.inputs) Make(e);
      } else if (again_[id] && node.kind == Node::Kind::kForward) {
        for (int i = node.num_args; i < static_cast<int>(node.inputs.size()); ++i) states_[id].push_back(Snapshot(node.inputs[i]));
      }
      first_run_[id] = rewriter_.Keep(id);
      if (node.forward >= 0) rewriter_.graph().nodes[first_run_[id]].forward = first_run_[node.forward];
    }
    return rewriter_.Finish();
  }

 private:
  // A copy of an auxiliary state as it is before the first run: what the second run reads, and may change without effect.
  NodeEntry Snapshot(NodeEntry state) {
    const NodeEntry now = rewriter_.Map(state);
    ExecNode node;
    node.kind = Node::Kind::kReorder;
    node.name = rewriter_.graph().nodes[now.node].name + "_copy";
    node.ctx = rewriter_.graph().nodes[now.node].ctx;
    node.inputs = {now};
    node.specs = {rewriter_.spec(now)};
    node.req = {OpReqType::kWriteTo};
    node.adds_to.resize(1);
    return {rewriter_.Add(std::move(node)), 0};
  }

  void Make(NodeEntry entry) {
    if (!entry || !again_[entry.node] || made_[entry.node]) return;
    const int id = entry.node;
    made_[id] = true;
    for (const NodeEntry& e : graph_.nodes[id].inputs) Make(e);
    ExecNode copy = graph_.nodes[id];
    copy.name += "_again";
    for (NodeEntry& e : copy.inputs) e = rewriter_.Map(e);
    std::copy(states_[id].begin(), states_[id].end(), copy.inputs.end() - static_cast<std::ptrdiff_t>(states_[id].size()));
    copy.forward = first_run_[id];
    copy.backward_pass = true;
    const int now = rewriter_.Add(std::move(copy));
    for (int i = 0; i < static_cast<int>(graph_.nodes[id].specs.size()); ++i) rewriter_.Redirect({id, i}, {now, i});
  }

  const ExecGraph& graph_;
  const std::vector<bool>& again_;
  Rewriter rewriter_;
  std::vector<int> first_run_;  // [node]: in the new graph
  std::vector<bool> made_;
  std::vector<std::vector<NodeEntry>> states_;  // [node]: its auxiliary states for the second run, in the new graph
};

double CostOfCopies(const ExecGraph& graph) {
  double cost = 0;
  for (const ExecNode& node : graph.nodes) {
    if (node.kind == Node::Kind::kForward && node.forward >= 0) cost += node.plan->cost;
  }
  return cost;
}

}  // namespace

std::vector<bool> Repeatable(const ExecGraph& graph) {
  std::vector<bool> repeatable(graph.nodes.size());
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const ExecNode& node = graph.nodes[id];
    if (node.backward_pass || node.derived) continue;
    repeatable[id] = node.kind == Node::Kind::kReorder || node.kind == Node::Kind::kForward;
  }
  for (const NodeEntry& head : graph.heads) repeatable[head.node] = false;
  return repeatable;
}

ExecGraph RunAgain(const ExecGraph& graph, const std::vector<bool>& again) { return CopyMaker(graph, again).Run(); }

ExecGraph Recompute(ExecGraph graph, const BindRequest& request) {
  const int64_t budget = request.memory_budget;
  if (budget == 0) return graph;
  const MemoryPlan plain = PlanLifetimes(graph);
  int64_t least = plain.lower_bound;
  ExecGraph best;
  if (graph.first_backward >= 0 && plain.lower_bound > budget) {
    const RecomputeChoice choice(graph, plain);
    double best_cost = 0;
    int64_t too_little = 0, enough = plain.lower_bound;
    for (int step = 0; step < kSteps; ++step) {
      // The first try takes the estimates at their word.
      const int64_t aim = step == 0 ? budget : too_little + (enough - too_little) / 2;
      const std::vector<bool> again = choice.Within(aim);
      if (again.empty()) {
        too_little = aim;
        continue;
      }
      ExecGraph tried = RunAgain(graph, again);
      const int64_t peak = PlanLifetimes(tried).lower_bound;
      least = std::min(least, peak);
      const double cost = CostOfCopies(tried);
      if (peak > budget) {
        enough = aim;
      } else {
        too_little = aim;
        if (best.nodes.empty() || cost < best_cost) {
          best_cost = cost;
          best = std::move(tried);
        }
      }
    }
  }
  if (least > budget) {
    Throw(ErrorKind::kConfig, "a memory budget of {} cannot be met: with recomputation the net needs {} at least (without, {}); raise memory_budget or lower the batch size",
          FormatBytes(budget), FormatBytes(least), FormatBytes(plain.lower_bound));
  }
  return best.nodes.empty() ? std::move(graph) : std::move(best);
}

}  // namespace mxtrain::executor
