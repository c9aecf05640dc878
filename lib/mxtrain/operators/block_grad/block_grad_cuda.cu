// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operators/block_grad/block_grad_loops.h"

MXTRAIN_OPERATOR(block_grad_cuda, registry) {
  registry.AddKernel(mxtrain::BlockGradKernel<mxtrain::OnGpu>());
}
