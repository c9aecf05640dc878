// SPDX-License-Identifier: Apache-2.0
#pragma once
// Execution order: all topological orders give the same bits, but they differ in memory use.
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

// Reorders the nodes if that lowers the peak of live bytes; else returns the graph unchanged.
// Deterministic.
MXTRAIN_API ExecGraph ChooseOrder(ExecGraph graph);

}  // namespace mxtrain::executor
