#include <algorithm>
#include <cmath>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/fold_batch_norm/fold_batch_norm.h"

namespace mxtrain {
namespace {

class FoldBatchNormReference final : public Operator {
 public:
  explicit FoldBatchNormReference(const FoldBatchNormParam& param) : param_(param) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "_FoldBatchNorm", [&](auto weight_tag) {
      SwitchFloating(in.back().type, "_FoldBatchNorm", [&](auto statistics_tag) {
        Fold<typename decltype(weight_tag)::type, typename decltype(statistics_tag)::type>(ctx, in, req, out);
      });
    });
  }

 private:
  // T: of weight and bias, S: of the four arrays of the BatchNorm.
  template <typename T, typename S>
  void Fold(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out) const {
    using A = std::common_type_t<AccumulatorOf<T>, AccumulatorOf<S>>;
    const size_t first = param_.no_bias ? 1 : 2;
    const T* weight = in[0].dptr<T>();
    const T* bias = param_.no_bias ? nullptr : in[1].dptr<T>();
    const S* gamma = in[first].dptr<S>();
    const S* beta = in[first + 1].dptr<S>();
    const S* mean = in[first + 2].dptr<S>();
    const S* variance = in[first + 3].dptr<S>();
    const auto scale = [gamma, variance, eps = A(param_.eps), fixed = param_.fix_gamma](int64_t o) {
      return (fixed ? A(1) : A(gamma[o])) / std::sqrt(A(variance[o]) + eps);
    };
    const int64_t per_channel = std::max<int64_t>(in[0].shape.Product(1, in[0].shape.ndim()), 1);
    Map<T>(ctx.run_ctx, out[0], req[0], [weight, scale, per_channel](int64_t i) { return A(weight[i]) * scale(i / per_channel); });
    Map<T>(ctx.run_ctx, out[1], req[1], [=](int64_t o) { return ((bias ? A(bias[o]) : A(0)) - A(mean[o])) * scale(o) + A(beta[o]); });
  }

  FoldBatchNormParam param_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  if (request.needs_backward) return Refusal{"has no gradient"};
  Plan plan = PlainPlan(base, request);
  plan.make = [param = static_cast<const FoldBatchNormProperty&>(base).param()] { return std::make_unique<FoldBatchNormReference>(param); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(fold_batch_norm_cpu, registry) {
  registry.AddRow({"_FoldBatchNorm", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
