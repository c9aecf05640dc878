#include "mxtrain/operators/clip/clip.h"

namespace mxtrain::clip {

MXTRAIN_OPERATOR(clip_cpu, registry) {
  SimpleOp(registry, "clip")
      .set_function(DeviceType::kCPU, Forward<OnCpu>, kInplaceInOut)
      .set_gradient(DeviceType::kCPU, Backward<OnCpu>, kInplaceOutIn)
      .set_kwargs_struct<ClipParam>()
      .set_elementwise(Elementwise::kYes)
      .describe("every element, but no less than a_min and no more than a_max");
}

}  // namespace mxtrain::clip
