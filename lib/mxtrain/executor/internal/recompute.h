// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two parts of Recompute: choosing the forward nodes to recompute, and rewriting the graph
// accordingly.
#include <vector>

#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::executor {

// Whether each node may be recomputed in the backward pass: all of the forward pass except heads,
// which are outside the arena.
MXTRAIN_API std::vector<bool> Repeatable(const ExecGraph& graph);

// Rewrites the graph such that the backward pass reads nothing that the `again` nodes wrote in the
// forward pass. Each gets a copy before its first reader (node.forward of the copy is the node),
// unless nothing reads it. An operator with auxiliary states is recomputed on copies of their
// values before its first run.
MXTRAIN_API ExecGraph RunAgain(const ExecGraph& graph, const std::vector<bool>& again);

// Chooses nodes to recompute. A net is divided at cut points, where a single array leads from one
// part to the next. Between two cut points either everything is kept, or what is cheap is
// recomputed, or everything is, from the arrays at the cut points. For a given number of bytes,
// dynamic programming over the cut points finds the cheapest choice; bytes are estimates from the
// plain plan, so the caller must check the result.
class MXTRAIN_API RecomputeChoice {
 public:
  // `plain`: PlanLifetimes(graph).
  RecomputeChoice(const ExecGraph& graph, const MemoryPlan& plain);

  // Nodes to recompute such that the estimated peak stays within `bytes`; empty if impossible.
  std::vector<bool> Within(int64_t bytes) const;

 private:
  enum Mode { kKeep, kCheap, kAll, kModes };
  // The part between two neighbouring cut points: forward nodes [begin, end); the last one produces
  // the array at the next cut point.
  struct Part {
    int begin = 0, end = 0;
    int64_t boundary = 0;          // bytes at the next cut point; 0 for the last part
    bool boundary_waits = false;   // for the backward pass, in the plain plan
    int64_t waiting[kModes] = {};  // bytes held for the backward pass
    int64_t passing = 0;           // peak of live bytes besides those held
    double cost[kModes] = {};      // nanoseconds of recomputation
    double cost_but_last = 0;      // of kAll, if the array at the next cut point is kept
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
  std::vector<bool> read_back_;  // [node]: the backward pass reads one of its outputs
  std::vector<bool> cheap_;      // [node]: cheap to recompute from what the plain plan keeps
  std::vector<Part> parts_;
};

}  // namespace mxtrain::executor
