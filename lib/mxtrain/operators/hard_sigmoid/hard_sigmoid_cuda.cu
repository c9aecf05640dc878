// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operators/hard_sigmoid/hard_sigmoid.h"

MXTRAIN_OPERATOR(hard_sigmoid_cuda, registry) {
  using namespace mxtrain;
  SimpleOp(registry, "hard_sigmoid")
      .set_function(DeviceType::kGPU, hard_sigmoid::Forward<OnGpu>, kInplaceInOut)
      .set_gradient(DeviceType::kGPU, hard_sigmoid::Backward<OnGpu>, kInplaceOutIn);
}
