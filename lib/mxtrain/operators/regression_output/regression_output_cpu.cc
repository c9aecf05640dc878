#include <algorithm>
#include <cmath>
#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/regression_output/regression_output.h"

namespace mxtrain {
namespace {

class RegressionOutputCpu final : public Operator {
 public:
  RegressionOutputCpu(RegressionKind kind, double scale) : kind_(kind), scale_(scale) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    if (kind_ != RegressionKind::kLogistic) return CopyBlob(ctx.run_ctx, req[0], in[0], out[0]);
    SwitchFloating(in[0].type, "a regression output", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      Map<T>(ctx.run_ctx, out[0], req[0], [x = in[0].dptr<T>()](int64_t i) { return A(1) / (A(1) + std::exp(-A(x[i]))); });
    });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob>, std::span<const TBlob> in, std::span<const TBlob> out,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "a regression output", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T* y = out[0].dptr<T>();
      const T* label = in[1].dptr<T>();
      const A scale = static_cast<A>(scale_);
      if (kind_ == RegressionKind::kAbsolute) {
        // At equality the gradient is negative, as in the reference system.
        Map<T>(ctx.run_ctx, in_grad[0], req[0], [=](int64_t i) { return A(y[i]) > A(label[i]) ? scale : -scale; });
      } else {
        Map<T>(ctx.run_ctx, in_grad[0], req[0], [=](int64_t i) { return scale * (A(y[i]) - A(label[i])); });
      }
    });
  }

 private:
  RegressionKind kind_;
  double scale_;  // of the gradient of one element
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  const auto& property = static_cast<const RegressionOutputProperty&>(base);
  const TShape& label = request.in[1].shape;
  const int64_t per_sample = std::max<int64_t>(1, label.Product(1, label.ndim()));
  Plan plan = PlainPlan(property, request);
  plan.make = [kind = property.kind(), scale = double{property.param().grad_scale} / static_cast<double>(per_sample)] {
    return std::make_unique<RegressionOutputCpu>(kind, scale);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(regression_output_cpu, registry) {
  for (const char* op : {"LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"}) {
    registry.AddRow({op, mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
  }
}
