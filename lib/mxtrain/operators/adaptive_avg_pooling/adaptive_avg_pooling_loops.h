// SPDX-License-Identifier: Apache-2.0
#pragma once
// AdaptiveAvgPooling2D, written once for all devices.
#include "mxtrain/operator/resample.h"
#include "mxtrain/operators/adaptive_avg_pooling/adaptive_avg_pooling.h"

namespace mxtrain::adaptive_avg_pooling {

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const TShape &data = request.in[0].shape, &out = request.out[0].shape;
  return ResamplePlan<Device>(base, request, "AdaptiveAvgPooling2D", AverageTaps{data[2], out[2]},
                              AverageTaps{data[3], out[3]});
}

}  // namespace mxtrain::adaptive_avg_pooling

MXTRAIN_KERNELS(adaptive_avg_pooling, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      LastKernel<Device>("AdaptiveAvgPooling2D", adaptive_avg_pooling::MakePlan<Device>));
}
