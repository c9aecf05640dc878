// SPDX-License-Identifier: Apache-2.0
#pragma once
// Concat, written once for both devices: Device is OnCpu or OnGpu.
#include <algorithm>
#include <memory>
#include <vector>

#include "mxtrain/operator/axis_pieces.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/concat/concat.h"

namespace mxtrain::concat {

template <typename Device>
class JoinPieces final : public Operator {
 public:
  explicit JoinPieces(int axis) : axis_(axis) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    const AxisView view(out[0].shape, axis_, out[0].layout);
    int64_t begin = 0;
    for (const TBlob& piece : in) {
      CopyToWhole(Device{ctx.run_ctx}, req[0], piece, view, begin, piece.shape[axis_], out[0]);
      begin += piece.shape[axis_];
    }
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>,
                std::span<const TBlob>, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    const AxisView view(out_grad[0].shape, axis_, out_grad[0].layout);
    int64_t begin = 0;
    for (size_t i = 0; i < in_grad.size(); ++i) {
      CopyFromWhole(Device{ctx.run_ctx}, req[i], out_grad[0], view, begin, in_grad[i].shape[axis_],
                    in_grad[i]);
      begin += in_grad[i].shape[axis_];
    }
  }

 private:
  int axis_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const TShape& whole = request.out[0].shape;
  const int axis = static_cast<const ConcatProperty&>(base).Axis(whole.ndim());
  std::vector<TShape> pieces;
  for (const TensorSpec& spec : request.in) pieces.push_back(spec.shape);
  Plan plan = PlainPlan(base, request);
  const Layout common = CommonLayout(request.in_layout, whole, axis, pieces);
  std::fill(plan.in.begin(), plan.in.end(), common);
  plan.out[0] = common;
  plan.make = [axis] { return std::make_unique<JoinPieces<Device>>(axis); };
  return plan;
}

}  // namespace mxtrain::concat
