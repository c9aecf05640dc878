// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/leaky_relu/leaky_relu_loops.h"

MXTRAIN_OPERATOR(leaky_relu_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnGpu>("LeakyReLU", leaky_relu::MakePlan<OnGpu>));
}
