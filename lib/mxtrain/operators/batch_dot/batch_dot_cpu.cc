#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/batch_dot/batch_dot.h"

namespace mxtrain::dot {
namespace {

class BatchDot final : public Operator {
 public:
  explicit BatchDot(const BatchDotParam& param) : param_(param) {}

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    MultiplyMatrices(in[0], Left(in), in[1], Right(in), out[0], BatchView(out[0].shape, false), req[0]);
  }
  // dA = dC B', dB = A' dC.
  void Backward(const OpContext&, std::span<const TBlob> head, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> grad, std::span<const TBlob>) override {
    const MatrixView c = BatchView(head[0].shape, false);
    MultiplyMatrices(head[0], c, in[1], Right(in).Transposed(), grad[0], Left(in), req[0]);
    MultiplyMatrices(in[0], Left(in).Transposed(), head[0], c, grad[1], Right(in), req[1]);
  }

 private:
  MatrixView Left(std::span<const TBlob> in) const { return BatchView(in[0].shape, param_.transpose_a); }
  MatrixView Right(std::span<const TBlob> in) const { return BatchView(in[1].shape, param_.transpose_b); }

  BatchDotParam param_;
};

Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  if (!IsFloating(request.in[0].type)) return Refusal{format("no function for {}", NameOf(request.in[0].type))};
  const BatchDotParam& param = static_cast<const BatchDotProperty&>(base).param();
  Plan plan = PlainPlan(base, request);
  plan.cost = ProductCost(BatchView(request.in[0].shape, param.transpose_a), BatchView(request.in[1].shape, param.transpose_b));
  plan.make = [param] { return std::make_unique<BatchDot>(param); };
  return plan;
}

}  // namespace

MXTRAIN_OPERATOR(batch_dot_cpu, registry) {
  registry.AddRow({"batch_dot", DeviceType::kCPU, "ref", kRefRank, MakePlan});
}

}  // namespace mxtrain::dot
