// SPDX-License-Identifier: Apache-2.0
#pragma once
// A few bytes of the host written to a GPU.
#include "mxtrain/device/cuda/stream.h"

namespace mxtrain::cuda {

// As Backend::PutBytes.
void PutBytes(CudaStream& stream, const void* value, void* dst, int64_t bytes);

}  // namespace mxtrain::cuda
