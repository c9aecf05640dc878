// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arrays of one run, prepared for binding to ports: checked, plain, with distinct variables (an
// engine push rejects duplicates, and ports must not alias).
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/executor/internal/external_buffers.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain::executor {

using RunInputs = std::vector<std::pair<int, NDArray>>;  // by number of the external buffer

// Both add to `inputs`, and throw kConfig naming an array that is missing, superfluous, or of the
// wrong shape or type.
void CheckInputs(const ExternalBuffers& externals, const std::vector<std::string>& names,
                 std::span<const NDArray> given, RunInputs* inputs);
void CheckHeadGrads(const ExternalBuffers& externals, const ExecGraph& graph, const Symbol& symbol,
                    std::span<const NDArray> given, RunInputs* inputs);

// Copies each array whose variable belongs to the net, to `others` or to an earlier array.
void MakeDistinct(const ExternalBuffers& externals, std::span<const NDArray> others,
                  RunInputs* inputs);

}  // namespace mxtrain::executor
