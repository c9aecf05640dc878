// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operators/image_normalize/image_normalize_loops.h"

MXTRAIN_OPERATOR(image_normalize_cuda, registry) {
  registry.AddKernel(mxtrain::image_normalize::Kernel<mxtrain::OnGpu>());
}
