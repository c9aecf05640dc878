// SPDX-License-Identifier: Apache-2.0
#pragma once
// SliceChannel, written once for both devices: Device is OnCpu or OnGpu.
#include <algorithm>
#include <memory>
#include <vector>

#include "mxtrain/operator/axis_pieces.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/slice_channel/slice_channel.h"

namespace mxtrain::slice_channel {

template <typename Device>
class CutPieces final : public Operator {
 public:
  CutPieces(const TensorSpec& data, int axis, int parts)
      : view_(data.shape, axis, data.layout), part_(data.shape[axis] / parts) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    for (size_t i = 0; i < out.size(); ++i)
      CopyFromWhole(Device{ctx.run_ctx}, req[i], in[0], view_, static_cast<int64_t>(i) * part_,
                    part_, out[i]);
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>,
                std::span<const TBlob>, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    for (size_t i = 0; i < out_grad.size(); ++i)
      CopyToWhole(Device{ctx.run_ctx}, req[0], out_grad[i], view_, static_cast<int64_t>(i) * part_,
                  part_, in_grad[0]);
  }

 private:
  AxisView view_;
  int64_t part_;  // length of an output along the axis
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const SliceChannelProperty&>(base);
  const TShape& whole = request.in[0].shape;
  const int axis = property.Axis(whole.ndim());
  Plan plan = PlainPlan(base, request);
  // All parts have one shape.
  const Layout common = CommonLayout(request.in_layout, whole, axis, {&request.out[0].shape, 1});
  plan.in[0] = common;
  std::fill(plan.out.begin(), plan.out.end(), common);
  plan.make = [data = TensorSpec{whole, request.in[0].type, common}, axis,
               parts = property.param().num_outputs] {
    return std::make_unique<CutPieces<Device>>(data, axis, parts);
  };
  return plan;
}

}  // namespace mxtrain::slice_channel
