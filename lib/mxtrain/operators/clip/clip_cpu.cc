// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/clip/clip.h"

namespace mxtrain::clip {

MXTRAIN_OPERATOR(clip_cpu, registry) {
  SimpleOp(registry, "clip")
      .set_function(DeviceType::kCPU, Forward<OnCpu>, kInplaceInOut)
      .set_gradient(DeviceType::kCPU, Backward<OnCpu>, kInplaceOutIn)
      .set_kwargs_struct<ClipParam>()
      .set_elementwise(Elementwise::kYes)
      .describe("clamps every element to [a_min, a_max]");
}

}  // namespace mxtrain::clip
