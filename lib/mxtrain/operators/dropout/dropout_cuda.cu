// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operators/dropout/dropout_loops.h"

MXTRAIN_OPERATOR(dropout_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnGpu>("Dropout", dropout::MakePlan<OnGpu>));
}
