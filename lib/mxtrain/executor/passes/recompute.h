#pragma once
// What Recompute is made of: which forward nodes to run again (a choice), and the graph that does so (a rewriting).
#include <vector>

#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::executor {

// Whether each node may run a second time in the backward pass: all of the forward pass but the heads, which lie outside the arena.
MXTRAIN_API std::vector<bool> Repeatable(const ExecGraph& graph);

// The graph in which the backward pass reads nothing that the `again` nodes wrote in the forward pass. Each has a copy, put before its
// first reader: the copy's node.forward is the node. A copy that nothing reads is not made. An operator with auxiliary states runs again on
// copies of what they were before its first run, whatever it does to them.
MXTRAIN_API ExecGraph RunAgain(const ExecGraph& graph, const std::vector<bool>& again);

// Finds nodes to run again. A net is cut where a single array leads from one part to the next; between two cuts everything is kept, or what
// costs little is run again, or everything is, out of what lies at the cuts. For a given number of bytes dynamic programming over the cuts
// finds the choice of least cost; bytes are estimates out of the plain plan, so the caller measures the outcome.
class MXTRAIN_API RecomputeChoice {
 public:
  // `plain`: PlanLifetimes(graph).
  RecomputeChoice(const ExecGraph& graph, const MemoryPlan& plain);

  // Nodes to run again so that the estimated peak stays within `bytes`; empty when no choice does.
  std::vector<bool> Within(int64_t bytes) const;

 private:
  enum Mode { kKeep, kCheap, kAll, kModes };
  // What lies between two neighbouring cuts: forward nodes [begin, end), of which the last makes what lies at the cut behind.
  struct Part {
    int begin = 0, end = 0;
    int64_t boundary = 0;          // bytes at the cut; 0 behind the last part
    bool boundary_waits = false;   // for the backward pass, in the plain plan
    int64_t waiting[kModes] = {};  // bytes that wait for the backward pass
    int64_t passing = 0;           // most bytes alive at one time beside those that wait
    double cost[kModes] = {};      // nanoseconds of what runs again
    double cost_but_last = 0;      // of kAll, when what lies at the cut is kept
  };

  double CostOf(int id) const;
  double CostOf(const Part& part, const std::vector<bool>& may, bool with_last) const;
  void FindCheap();
  void FindParts();
  void MeasureBytes();

  const ExecGraph& graph_;
  const MemoryPlan& plain_;
  const int forward_nodes_;
  const std::vector<bool> repeatable_;
  std::vector<bool> read_back_;  // [node]: the backward pass reads something of it
  std::vector<bool> cheap_;      // [node]: runs again at little cost out of what the plain plan keeps
  std::vector<Part> parts_;
};

}  // namespace mxtrain::executor
