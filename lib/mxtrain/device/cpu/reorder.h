#pragma once
// Conversion between plain and blocked layouts on the CPU, with the calling thread's OpenMP team.
#include "mxtrain/device/layout.h"

namespace mxtrain {

// Copies the elements of `src` to their places in `dst` and writes the padding of `dst` as zeros. Shapes and types must agree and layouts be
// plain or BlockedLayout, `to` perhaps a DerivedLayout (kBug otherwise). The ranges may overlap only when the layouts are equal.
void ReorderCpu(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst);

// memcpy by the whole team; memmove where the ranges overlap.
void CopyBytesCpu(const void* src, void* dst, int64_t bytes);

}  // namespace mxtrain
