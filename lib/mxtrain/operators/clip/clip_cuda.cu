// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operators/clip/clip.h"

MXTRAIN_OPERATOR(clip_cuda, registry) {
  using namespace mxtrain;
  SimpleOp(registry, "clip")
      .set_function(DeviceType::kGPU, clip::Forward<OnGpu>, kInplaceInOut)
      .set_gradient(DeviceType::kGPU, clip::Backward<OnGpu>, kInplaceOutIn);
}
