// SPDX-License-Identifier: Apache-2.0
// Overlap: simulates the nodes of a pass on several workers. As in the engine, each free worker
// takes the first node, in the given order, whose predecessors have ended (Graham 1969). The new
// order is that of the starts. Planned for one worker, branches that could run side by side would
// share bytes, and so wait for each other.
//
// A source (a node without predecessors, such as the conversion of a weight) starts no earlier than
// the other predecessors of its first reader: else all of them would start with the pass, and their
// results be held until they are read. No two nodes wait for each other: a source waits for nodes
// before its first reader, which depend only on sources read before that.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/internal/order.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/memory_plan.h"
#include "mxtrain/operator/plans.h"

namespace mxtrain::executor {
namespace {

class Simulation {
 public:
  Simulation(const ExecGraph& graph, int workers)
      : graph_(graph),
        has_kernel_(PlanLifetimes(graph).runs),
        idle_(workers),
        before_(graph.nodes.size()),
        after_(graph.nodes.size()),
        at_start_(graph.nodes.size()),
        waits_(graph.nodes.size()),
        last_beside_(graph.nodes.size()) {
    std::map<int, int> last_user;  // of an auxiliary state: each may change it
    for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
      if (Runs(id)) AddPredecessors(id, &last_user);
    }
    for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
      waits_[id] += static_cast<int>(before_[id].size());
      if (before_[id].empty() && !after_[id].empty()) HoldSource(id);
    }
  }

  // Nodes in the order of their starts; the passes one after the other.
  ExecGraph Run() {
    for (const bool backward : {false, true}) {
      for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
        if (graph_.nodes[id].backward_pass != backward) continue;
        if (!Runs(id)) {
          Start(id);
        } else if (waits_[id] == 0) {
          ready_.insert(id);
        }
      }
      RunReady();
    }
    Rewriter rewriter(graph_);
    for (int id : order_) rewriter.Keep(id);
    ExecGraph ordered = rewriter.Finish();
    MXTRAIN_ASSERT(ordered.nodes.size() == order_.size());
    for (size_t i = 0; i < order_.size(); ++i)
      ordered.nodes[i].last_beside = last_beside_[order_[i]];
    return ordered;
  }
  // Whether any two nodes run side by side.
  bool overlaps() const { return overlaps_; }

 private:
  struct Running {
    double end;
    int node;
    bool operator>(const Running& o) const { return end != o.end ? end > o.end : node > o.node; }
  };

  // Variables do not; precomputed parameters are a sequence of their own.
  bool Runs(int id) const {
    return !graph_.nodes[id].is_variable() && !graph_.nodes[id].precomputed;
  }

  void AddPredecessors(int id, std::map<int, int>* last_user) {
    const ExecNode& node = graph_.nodes[id];
    std::vector<int> predecessors;
    const auto add = [&](NodeEntry e) {
      if (!e) return;
      if (Runs(e.node)) predecessors.push_back(e.node);
      if (graph_.nodes[e.node].kind != Node::Kind::kAux) return;
      const auto [last, first_user] = last_user->try_emplace(e.node, id);
      if (!first_user && last->second != id)
        predecessors.push_back(std::exchange(last->second, id));
    };
    std::for_each(node.inputs.begin(), node.inputs.end(), add);
    std::for_each(node.adds_to.begin(), node.adds_to.end(), add);
    std::sort(predecessors.begin(), predecessors.end());
    predecessors.erase(std::unique(predecessors.begin(), predecessors.end()), predecessors.end());
    // The forward pass has ended before the backward pass starts.
    for (int p : predecessors) {
      if (graph_.nodes[p].backward_pass != node.backward_pass) continue;
      before_[id].push_back(p);
      after_[p].push_back(id);
    }
  }

  void HoldSource(int source) {
    for (int p : before_[after_[source].front()]) {
      if (before_[p].empty()) continue;  // the source itself, or another
      ++waits_[source];
      at_start_[p].push_back(source);
    }
  }

  // Nanoseconds, by the kernels' model. The gradients take as long as the results, each; those of
  // vectors, such as a bias, take little.
  double Cost(int id) const {
    const ExecNode& node = graph_.nodes[id];
    if (!node.plan) {
      double bytes = 0;
      for (const TensorSpec& spec : node.specs) bytes += static_cast<double>(spec.Bytes());
      return 1 + MoveCost(2 * bytes);
    }
    if (node.kind != Node::Kind::kBackward) return 1 + node.plan->cost;
    int gradients = 0;
    for (size_t i = 0; i < node.req.size(); ++i)
      gradients += node.req[i] != OpReqType::kNullOp && node.specs[i].shape.ndim() > 1;
    return 1 + node.plan->cost * std::clamp(gradients, 1, 2);
  }

  void Start(int id) {
    last_beside_[id] = static_cast<int>(order_.size());
    order_.push_back(id);
    Release(at_start_[id]);
  }

  void Release(const std::vector<int>& nodes) {
    for (int id : nodes) {
      if (--waits_[id] == 0) ready_.insert(id);
    }
  }

  void RunReady() {
    double now = 0;
    for (;;) {
      while (idle_ > 0 && !ready_.empty()) StartFirst(now);
      if (running_.empty()) return;
      now = running_.top().end;
      while (!running_.empty() && running_.top().end == now) End();
    }
  }

  void StartFirst(double now) {
    const int id = *ready_.begin();
    ready_.erase(ready_.begin());
    Start(id);
    if (!has_kernel_[id]) return Release(after_[id]);  // takes no time and no worker
    last_started_ = last_beside_[id];
    --idle_;
    running_.push({now + Cost(id), id});
  }

  void End() {
    const int id = running_.top().node;
    running_.pop();
    ++idle_;
    overlaps_ |= last_started_ > last_beside_[id];
    last_beside_[id] = last_started_;
    Release(after_[id]);
  }

  const ExecGraph& graph_;
  const std::vector<bool> has_kernel_;            // [node]: it is not the alias of an input
  int idle_;                                      // workers
  std::vector<std::vector<int>> before_, after_;  // [node]: in its pass, ascending
  std::vector<std::vector<int>> at_start_;        // [node]: sources that wait for its start
  std::vector<int> waits_;                        // [node]: for so many ends, or starts
  std::set<int> ready_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::vector<int> order_;
  std::vector<int> last_beside_;  // [node]: position in `order_`
  int last_started_ = 0;          // position of the last node that took a worker
  bool overlaps_ = false;
};

}  // namespace

ExecGraph Overlap(ExecGraph graph, Context ctx, int workers) {
  const auto elsewhere = [ctx](const ExecNode& node) { return node.ctx != ctx; };
  if (workers == 1 || ctx.type == DeviceType::kGPU ||
      std::any_of(graph.nodes.begin(), graph.nodes.end(), elsewhere))
    return graph;
  Simulation simulation(graph, workers);
  ExecGraph ordered = simulation.Run();
  return simulation.overlaps() ? std::move(ordered) : std::move(graph);
}

}  // namespace mxtrain::executor
