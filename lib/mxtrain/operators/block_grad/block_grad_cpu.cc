// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/block_grad/block_grad_loops.h"

MXTRAIN_OPERATOR(block_grad_cpu, registry) {
  registry.AddKernel(mxtrain::BlockGradKernel<mxtrain::OnCpu>());
}
