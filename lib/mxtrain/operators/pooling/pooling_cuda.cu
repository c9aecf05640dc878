// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/pooling/pooling_loops.h"

MXTRAIN_OPERATOR(pooling_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnGpu>("Pooling", pooling::MakePlan<OnGpu>));
}
