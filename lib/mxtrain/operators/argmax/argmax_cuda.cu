// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/argmax/argmax.h"

MXTRAIN_OPERATOR(argmax_cuda, registry) {
  mxtrain::argmax::AddKernels<mxtrain::OnGpu>(registry);
}
