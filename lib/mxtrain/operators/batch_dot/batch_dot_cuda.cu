// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/dot/matrix_product.cuh"  // before the kernels that call it

#include "mxtrain/operators/batch_dot/batch_dot.h"

MXTRAIN_OPERATOR(batch_dot_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel({"batch_dot", DeviceType::kGPU, "cublas", kRefRank,
                      dot::PlanProducts<dot::BatchDotProperty, OnGpu>});
}
