// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversion on the CPU between plain and blocked layouts, and between float32 and the 16-bit
// types, with the calling thread's OpenMP team.
#include "mxtrain/device/layout.h"

namespace mxtrain {

// Copies the elements of `src` to their places in `dst` and fills the padding of `dst` with zeros.
// Shapes must match. Types must match, or be float32 and float16 or bfloat16. Layouts must be plain
// or BlockedLayout; `to` may be a DerivedLayout of the same type (kBug otherwise). The ranges may
// overlap only if types and layouts are equal.
void ReorderCpu(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst);

// memcpy by the whole team; memmove if the ranges overlap.
void CopyBytesCpu(const void* src, void* dst, int64_t bytes);

}  // namespace mxtrain
