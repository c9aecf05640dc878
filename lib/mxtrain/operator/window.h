// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by operators with a sliding window (convolution, pooling): parameters per spatial axis and
// sizes.
#include <algorithm>
#include <string>
#include <vector>

#include "mxtrain/base/math.h"
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

// Padding as the word `same`, TensorFlow's: as much as gives ceil(size / stride) windows, the
// larger half of it after the data. A property takes the word out of its parameters before these
// are read, writes it again, and names it as a choice.
inline constexpr const char* kSamePad = "same";
struct Padding {
  int64_t before, after;
};
// `window`: its extent in cells, with dilation.
inline Padding SamePadding(int64_t size, int64_t window, int64_t stride) {
  const int64_t needed = (CeilDivide(size, stride) - 1) * stride + window,
                all = std::max<int64_t>(needed - size, 0);
  return {all / 2, all - all / 2};
}
MXTRAIN_API bool TakeSamePad(Kwargs* kwargs);
MXTRAIN_API Kwargs WithSamePad(Kwargs kwargs);
MXTRAIN_API std::vector<FieldInfo> WithSamePadAsChoice(std::vector<FieldInfo> fields);

}  // namespace mxtrain
