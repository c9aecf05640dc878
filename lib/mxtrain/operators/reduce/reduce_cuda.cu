// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/reduce/reduce_loops.h"

MXTRAIN_OPERATOR(reduce_cuda, registry) {
  mxtrain::reduce::AddKernels<mxtrain::OnGpu>(registry);
}
