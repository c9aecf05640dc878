// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/softmax_activation/softmax_activation_loops.h"

MXTRAIN_OPERATOR(softmax_activation_cuda, registry) {
  registry.AddKernel(mxtrain::softmax_activation::Kernel<mxtrain::OnGpu>());
}
