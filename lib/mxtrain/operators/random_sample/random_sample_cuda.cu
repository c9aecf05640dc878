// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operators/random_sample/random_sample_loops.h"

MXTRAIN_OPERATOR(random_sample_cuda, registry) {
  mxtrain::random_sample::AddKernels<mxtrain::OnGpu>(registry);
}
