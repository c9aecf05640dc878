// SPDX-License-Identifier: Apache-2.0
#pragma once
// batch_dot as matrix products, written once for both devices: Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/batch_dot/batch_dot.h"

namespace mxtrain::dot {

template <typename Device>
class BatchDot final : public Operator {
 public:
  BatchDot(const BatchDotParam& param, Math math) : param_(param), math_(math) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    MultiplyMatrices(Device{ctx.run_ctx}, math_, in[0], Left(in), in[1], Right(in), out[0],
                     BatchView(out[0].shape, false), req[0]);
  }
  // dA = dC B', dB = A' dC.
  void Backward(const OpContext& ctx, std::span<const TBlob> head, std::span<const TBlob> in,
                std::span<const TBlob>, std::span<const OpReqType> req, std::span<const TBlob> grad,
                std::span<const TBlob>) override {
    const MatrixView c = BatchView(head[0].shape, false);
    MultiplyMatrices(Device{ctx.run_ctx}, math_, head[0], c, in[1], Right(in).Transposed(), grad[0],
                     Left(in), req[0]);
    MultiplyMatrices(Device{ctx.run_ctx}, math_, in[0], Left(in).Transposed(), head[0], c, grad[1],
                     Right(in), req[1]);
  }

 private:
  MatrixView Left(std::span<const TBlob> in) const {
    return BatchView(in[0].shape, param_.transpose_a);
  }
  MatrixView Right(std::span<const TBlob> in) const {
    return BatchView(in[1].shape, param_.transpose_b);
  }

  BatchDotParam param_;
  Math math_;
};

template <typename Device>
Expected<Plan, Refusal> PlanBatchDot(const OperatorProperty& base, const PlanRequest& request,
                                     Backend&) {
  if (!IsFloating(request.in[0].type))
    return Refusal{format("no function for {}", NameOf(request.in[0].type))};
  const BatchDotParam& param = static_cast<const BatchDotProperty&>(base).param();
  Plan plan = PlainPlan(base, request);
  plan.cost = ProductCost(BatchView(request.in[0].shape, param.transpose_a),
                          BatchView(request.in[1].shape, param.transpose_b));
  plan.make = [param, math = request.math] {
    return std::make_unique<BatchDot<Device>>(param, math);
  };
  return plan;
}

}  // namespace mxtrain::dot
