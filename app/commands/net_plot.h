#pragma once
// A net as a picture for people: boxes from above in the order of computation, each with what it does, its name, its output and its
// parameters.
#include <set>
#include <string>

#include "app/report/plot/drawing.h"
#include "mxtrain/symbol/graph.h"

namespace mxtrain::commands {

// `specs`: of one batch, complete. `inputs`: variables that are data; `labels`: variables that are left out. All others are parameters.
plot::Drawing PlotNet(const Graph& graph, const InferredSpecs& specs, const std::set<std::string>& inputs,
                      const std::set<std::string>& labels, const std::string& title);

}  // namespace mxtrain::commands
