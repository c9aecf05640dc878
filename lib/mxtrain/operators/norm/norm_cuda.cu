// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/norm/norm.h"

MXTRAIN_OPERATOR(norm_cuda, registry) {
  using namespace mxtrain;
  SimpleOp(registry, "norm")
      .set_function(DeviceType::kGPU, norm::Forward<OnGpu>, kNoInplace)
      .set_gradient(DeviceType::kGPU, norm::Backward<OnGpu>, kNoInplace);
}
