// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/softmax_cross_entropy/softmax_cross_entropy.h"

MXTRAIN_OPERATOR(softmax_cross_entropy_cuda, registry) {
  using namespace mxtrain;
  SimpleOp(registry, "softmax_cross_entropy")
      .set_function(DeviceType::kGPU, softmax_cross_entropy::Forward<OnGpu>, kNoInplace)
      .set_gradient(DeviceType::kGPU, softmax_cross_entropy::Backward<OnGpu>, kNoInplace);
}
