#pragma once
// The arrays that one run brings, made fit to be bound to its ports: checked, plain, and no variable twice (a push of the engine refuses
// one that is named twice, and a port is written under the eyes of the others).
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/executor/external_buffers.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain::executor {

using RunInputs = std::vector<std::pair<int, NDArray>>;  // by number of the outer array

// Both add to `inputs`, and throw kConfig naming what is missing, too much, or of another shape or type.
void CheckInputs(const ExternalBuffers& externals, const std::vector<std::string>& names, std::span<const NDArray> given, RunInputs* inputs);
void CheckHeadGrads(const ExternalBuffers& externals, const ExecGraph& graph, const Symbol& symbol, std::span<const NDArray> given,
                    RunInputs* inputs);

// An array whose variable is one of the net's own, of `others`, or of an array before it gets bytes of its own.
void MakeDistinct(const ExternalBuffers& externals, std::span<const NDArray> others, Context ctx, RunInputs* inputs);

}  // namespace mxtrain::executor
