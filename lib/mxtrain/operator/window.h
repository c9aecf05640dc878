#pragma once
// What operators with a sliding window (convolution, pooling) share: parameters per spatial axis and sizes.
#include <string>

#include "mxtrain/operator/property.h"

namespace mxtrain {

// `given` (one entry per spatial axis, or empty) with `fallback` for every axis when empty. Throws kConfig, naming `who` and `what`, for
// another number of entries or one below `least`.
MXTRAIN_API TShape WindowParam(const TShape& given, int axes, int64_t fallback, int64_t least, const std::string& who, const char* what);

// Cells that a window of `kernel` cells, `dilate` apart, covers.
inline int64_t DilatedSize(int64_t kernel, int64_t dilate) {
  return dilate * (kernel - 1) + 1;
}

}  // namespace mxtrain
