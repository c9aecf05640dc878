#pragma once
// Conversion between layouts and element types on a GPU.
#include "mxtrain/device/cuda/stream.h"
#include "mxtrain/device/layout.h"

namespace mxtrain::cuda {

// Copies the elements of `src` to their places in `dst` and writes the padding of `dst` as zeros. Shapes must agree; types too, or be
// float32 and one of float16 and bfloat16; layouts are plain or blocked (kBug otherwise). The ranges may not
// overlap.
void Reorder(CudaStream& stream, const TensorSpec& from, const void* src, const TensorSpec& to, void* dst);

}  // namespace mxtrain::cuda
