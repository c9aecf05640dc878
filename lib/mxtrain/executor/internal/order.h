// SPDX-License-Identifier: Apache-2.0
#pragma once
// Execution order: all topological orders give the same bits, but they differ in memory use.
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

// Reorders the nodes if that lowers the peak of live bytes; else returns the graph unchanged.
// Deterministic.
MXTRAIN_API ExecGraph ChooseOrder(ExecGraph graph);

// Orders the nodes as that many workers of the CPU would start them, and sets
// ExecNode::last_beside, so that PlanMemory lets no two share bytes that may run side by side.
// Takes more memory. Unchanged if nothing overlaps, and for a net with nodes on another device than
// `ctx`. Deterministic.
MXTRAIN_API ExecGraph Overlap(ExecGraph graph, Context ctx, int workers);

}  // namespace mxtrain::executor
