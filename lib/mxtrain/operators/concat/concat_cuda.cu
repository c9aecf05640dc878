// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/strided_view.cuh"
#include "mxtrain/operators/concat/concat_loops.h"

MXTRAIN_OPERATOR(concat_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnGpu>("Concat", concat::MakePlan<OnGpu>, Takes::kEveryType));
}
