// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operators/activation/activation_loops.h"

MXTRAIN_OPERATOR(activation_cuda, registry) {
  registry.AddKernel(mxtrain::ActivationKernel<mxtrain::OnGpu>());
}
