// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/smooth_l1/smooth_l1.h"

MXTRAIN_OPERATOR(smooth_l1_cpu, registry) {
  using namespace mxtrain;
  SimpleOp(registry, "smooth_l1")
      .set_function(DeviceType::kCPU, smooth_l1::Forward<OnCpu>, kInplaceInOut)
      .set_gradient(DeviceType::kCPU, smooth_l1::Backward<OnCpu>, kInplaceOutIn)
      .set_enable_scalar(true)
      .set_types(kFloatingTypes)
      .set_elementwise(Elementwise::kZeroToZero)
      .describe("0.5 (scalar x)^2 near zero, |x| - 0.5 / scalar^2 elsewhere");
}
