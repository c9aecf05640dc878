// SPDX-License-Identifier: Apache-2.0
#pragma once
// Many draws of one stream at once, for loops on the CPU.
#include <cstdint>

#include "mxtrain/ndarray/resource.h"

namespace mxtrain {

// Draws per call of FillUniform.
inline constexpr int64_t kUniformBlock = 256;

// to[k] = draws.Uniform(first + k) for k in [0, kUniformBlock). `first` is a multiple of 4: a block
// of Philox is computed once for its four draws.
MXTRAIN_API void FillUniform(const RandomDraws& draws, uint64_t first, float* to);

}  // namespace mxtrain
