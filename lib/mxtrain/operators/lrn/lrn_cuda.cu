// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operators/lrn/lrn_loops.h"

MXTRAIN_OPERATOR(lrn_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnGpu>("LRN", lrn::MakePlan<OnGpu>));
}
