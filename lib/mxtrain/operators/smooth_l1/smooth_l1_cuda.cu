// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operators/smooth_l1/smooth_l1.h"

MXTRAIN_OPERATOR(smooth_l1_cuda, registry) {
  using namespace mxtrain;
  SimpleOp(registry, "smooth_l1")
      .set_function(DeviceType::kGPU, smooth_l1::Forward<OnGpu>, kInplaceInOut)
      .set_gradient(DeviceType::kGPU, smooth_l1::Backward<OnGpu>, kInplaceOutIn);
}
