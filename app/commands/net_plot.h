// SPDX-License-Identifier: Apache-2.0
#pragma once
// A drawing of a net: boxes from top to bottom in order of computation, each with its operation,
// name, output and parameters.
#include <set>
#include <string>

#include "app/report/plot/drawing.h"
#include "mxtrain/symbol/graph.h"

namespace mxtrain::commands {

// `specs`: of one batch, complete. `inputs`: variables that are data; `labels`: variables that are
// not drawn. All others are parameters.
plot::Drawing PlotNet(const Graph& graph, const InferredSpecs& specs,
                      const std::set<std::string>& inputs, const std::set<std::string>& labels,
                      const std::string& title);

}  // namespace mxtrain::commands
