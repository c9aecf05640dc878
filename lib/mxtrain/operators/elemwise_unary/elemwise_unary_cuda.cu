// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operators/elemwise_unary/elemwise_unary_loops.h"

MXTRAIN_OPERATOR(elemwise_unary_cuda, registry) {
  mxtrain::elemwise_unary::AddKernels<mxtrain::OnGpu>(registry);
}
