// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversion between layouts and element types on a GPU.
#include "mxtrain/device/cuda/stream.h"
#include "mxtrain/device/layout.h"

namespace mxtrain::cuda {

// Copies the elements of `src` to their places in `dst` and fills the padding of `dst` with zeros.
// Shapes must match. Types must match, or be float32 and one of float16 and bfloat16. Layouts must
// be plain or blocked (kBug otherwise). The ranges must not overlap.
void Reorder(CudaStream& stream, const TensorSpec& from, const void* src, const TensorSpec& to,
             void* dst);

}  // namespace mxtrain::cuda
