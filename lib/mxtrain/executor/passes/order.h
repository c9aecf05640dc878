#pragma once
// The order of execution: any topological order gives the same bits, but not every one needs the same memory.
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

// The graph with its nodes in another order, where that lowers the most bytes alive at one time; else as it was. Deterministic.
MXTRAIN_API ExecGraph ChooseOrder(ExecGraph graph);

}  // namespace mxtrain::executor
