// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operators/cast/cast_loops.h"

MXTRAIN_OPERATOR(cast_cuda, registry) {
  registry.AddKernel(mxtrain::CastKernel<mxtrain::OnGpu>());
}
