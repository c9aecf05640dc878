// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operators/elemwise_scalar/elemwise_scalar_loops.h"

MXTRAIN_OPERATOR(elemwise_scalar_cuda, registry) {
  mxtrain::elemwise_scalar::AddKernels<mxtrain::OnGpu>(registry);
}
