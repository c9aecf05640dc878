// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by operators with a sliding window (convolution, pooling): parameters per spatial axis and
// sizes.
#include <string>

#include "mxtrain/operator/property.h"

namespace mxtrain {

// `given` (one entry per spatial axis), or `fallback` for every axis if it is empty. Throws
// kConfig, naming `who` and `what`, for any other number of entries or for one below `least`.
MXTRAIN_API TShape WindowParam(const TShape& given, int axes, int64_t fallback, int64_t least,
                               const std::string& who, const char* what);

// Extent in cells of a window of `kernel` cells with dilation `dilate`.
inline int64_t DilatedSize(int64_t kernel, int64_t dilate) {
  return dilate * (kernel - 1) + 1;
}

}  // namespace mxtrain
