// SPDX-License-Identifier: Apache-2.0
#pragma once
// dot as matrix products, written once for both devices: Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/dot/dot.h"

namespace mxtrain::dot {

template <typename Device>
class Dot final : public Operator {
 public:
  Dot(const MatrixView& a, const MatrixView& b, Math math)
      : a_(a), b_(b), c_{a.rows, b.columns, b.columns, 1}, math_(math) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    MultiplyMatrices(Device{ctx.run_ctx}, math_, in[0], a_, in[1], b_, out[0], c_, req[0]);
  }
  // dA = dC B', dB = A' dC.
  void Backward(const OpContext& ctx, std::span<const TBlob> head, std::span<const TBlob> in,
                std::span<const TBlob>, std::span<const OpReqType> req, std::span<const TBlob> grad,
                std::span<const TBlob>) override {
    MultiplyMatrices(Device{ctx.run_ctx}, math_, head[0], c_, in[1], b_.Transposed(), grad[0], a_,
                     req[0]);
    MultiplyMatrices(Device{ctx.run_ctx}, math_, in[0], a_.Transposed(), head[0], c_, grad[1], b_,
                     req[1]);
  }

 private:
  MatrixView a_, b_, c_;
  Math math_;
};

template <typename Device>
Expected<Plan, Refusal> PlanDot(const OperatorProperty& property, const PlanRequest& request,
                                Backend&) {
  if (!IsFloating(request.in[0].type))
    return Refusal{format("no function for {}", NameOf(request.in[0].type))};
  const DotParam& param = static_cast<const DotProperty&>(property).param();
  Plan plan;
  plan.in.resize(2);
  plan.out.resize(1);
  const MatrixView a = LeftView(request.in[0].shape, param.transpose_a),
                   b = RightView(request.in[1].shape, param.transpose_b);
  plan.cost = ProductCost(a, b);
  plan.make = [a, b, math = request.math]() -> std::unique_ptr<Operator> {
    return std::make_unique<Dot<Device>>(a, b, math);
  };
  return plan;
}

}  // namespace mxtrain::dot
