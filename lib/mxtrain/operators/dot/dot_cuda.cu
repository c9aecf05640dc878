// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/dot/matrix_product.cuh"  // before the kernels that call it

#include "mxtrain/operators/dot/dot.h"

MXTRAIN_OPERATOR(dot_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      {"dot", DeviceType::kGPU, "cublas", kRefRank, dot::PlanProducts<dot::DotProperty, OnGpu>});
}
