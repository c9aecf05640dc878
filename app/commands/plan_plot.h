#pragma once
// A memory plan as a picture: time across (nodes in their order), bytes up, a box for each piece of memory.
#include <string>

#include "app/report/plot/drawing.h"
#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::commands {

// Boxes bear their arrays' names where there is room, and as tooltips; `title` stands above.
plot::Drawing PlotMemory(const executor::ExecGraph& graph, const executor::MemoryPlan& plan, const std::string& title);

}  // namespace mxtrain::commands
