// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operators/elemwise_binary/elemwise_binary_loops.h"

MXTRAIN_OPERATOR(elemwise_binary_cuda, registry) {
  mxtrain::elemwise_binary::AddKernels<mxtrain::OnGpu>(registry);
}
