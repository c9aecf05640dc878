#pragma once
// Conversion between layouts, plain and blocked, and between float32 and the types of 16 bits, on the CPU, with the calling thread's OpenMP team.
#include "mxtrain/device/layout.h"

namespace mxtrain {

// Copies the elements of `src` to their places in `dst` and writes the padding of `dst` as zeros. Shapes must agree, types too, or be float32
// and float16 or bfloat16, and layouts be plain or BlockedLayout, `to` perhaps a DerivedLayout of the same type (kBug otherwise). The ranges may overlap
// only when types and layouts are equal.
void ReorderCpu(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst);

// memcpy by the whole team; memmove where the ranges overlap.
void CopyBytesCpu(const void* src, void* dst, int64_t bytes);

}  // namespace mxtrain
