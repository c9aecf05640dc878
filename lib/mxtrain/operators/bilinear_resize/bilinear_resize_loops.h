// SPDX-License-Identifier: Apache-2.0
#pragma once
// BilinearResize2D, written once for all devices.
#include "mxtrain/operator/resample.h"
#include "mxtrain/operators/bilinear_resize/bilinear_resize.h"

namespace mxtrain::bilinear_resize {

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const bool align = static_cast<const BilinearResizeProperty&>(base).param().align_corners;
  const TShape &data = request.in[0].shape, &out = request.out[0].shape;
  return ResamplePlan<Device>(base, request, "BilinearResize2D", LinearTaps(data[2], out[2], align),
                              LinearTaps(data[3], out[3], align));
}

}  // namespace mxtrain::bilinear_resize

MXTRAIN_KERNELS(bilinear_resize, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("BilinearResize2D", bilinear_resize::MakePlan<Device>));
}
