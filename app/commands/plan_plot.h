// SPDX-License-Identifier: Apache-2.0
#pragma once
// A figure of a memory plan: x axis time (nodes in order), y axis bytes, a box for each block of
// memory.
#include <string>

#include "app/report/plot/drawing.h"
#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::commands {

// Boxes show the names of their arrays if there is room, and as tooltips; `title` is above.
plot::Drawing PlotMemory(const executor::ExecGraph& graph, const executor::MemoryPlan& plan,
                         const std::string& title);

}  // namespace mxtrain::commands
