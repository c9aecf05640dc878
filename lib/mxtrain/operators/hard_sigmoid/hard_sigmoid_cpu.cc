// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/hard_sigmoid/hard_sigmoid.h"

namespace mxtrain::hard_sigmoid {

MXTRAIN_OPERATOR(hard_sigmoid_cpu, registry) {
  SimpleOp(registry, "hard_sigmoid")
      .set_function(DeviceType::kCPU, Forward<OnCpu>, kInplaceInOut)
      .set_gradient(DeviceType::kCPU, Backward<OnCpu>, kInplaceOutIn)
      .set_kwargs_struct<HardSigmoidParam>()
      .set_types(kFloatingTypes)
      .set_elementwise(Elementwise::kYes)
      .describe("alpha x + beta, clamped to [0, 1]");
}

}  // namespace mxtrain::hard_sigmoid
