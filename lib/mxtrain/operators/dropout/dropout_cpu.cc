#include <memory>

#include "mxtrain/operator/broadcast_index.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/dropout/dropout.h"

namespace mxtrain {
namespace {

class DropoutCpu final : public Operator {
 public:
  DropoutCpu(float p, bool drops, BroadcastIndex index) : keep_(1 - p), drops_(drops), index_(index) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "Dropout", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const Resource random = ctx.requested[0];
      const auto factor = [random, this](int64_t i) {
        return !drops_ ? A(1) : random.Uniform(static_cast<uint64_t>(i)) < keep_ ? static_cast<A>(T(A(1) / A(keep_))) : A(0);
      };
      // Without a wish for the mask the factors are drawn again where they are needed: a draw is a pure function of its index.
      Map<T>(ctx.run_ctx, out[1], req[1], [&](int64_t i) { return factor(i); });
      if (!drops_) return CopyBlob(ctx.run_ctx, req[0], in[0], out[0]);
      Map<T>(ctx.run_ctx, out[0], req[0], [&, x = in[0].dptr<T>()](int64_t i) { return A(x[i]) * factor(index_(i)); });
    });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>, std::span<const TBlob> out,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    if (!drops_) return CopyBlob(ctx.run_ctx, req[0], out_grad[0], in_grad[0]);
    SwitchFloating(in_grad[0].type, "Dropout", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      Map<T>(ctx.run_ctx, in_grad[0], req[0],
             [&, g = out_grad[0].dptr<T>(), mask = out[1].dptr<T>()](int64_t i) { return A(g[i]) * A(mask[index_(i)]); });
    });
  }

 private:
  float keep_;  // probability to keep an element
  bool drops_;
  BroadcastIndex index_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  const auto& property = static_cast<const DropoutProperty&>(base);
  const bool drops = property.Drops(request.is_train);
  // Draws go by the place of an element in the plain array; without them it is a copy, of any layout.
  Plan plan = drops ? PlainPlan(base, request) : FlatPlan(base, request, true);
  plan.out[1] = Layout();
  if (!drops) plan.backward_reads = BackwardReads{{true, false}, {false}, {false, false}};
  plan.make = [p = property.param().p, drops, index = BroadcastIndex(request.in[0].shape, request.out[1].shape)] {
    return std::make_unique<DropoutCpu>(p, drops, index);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(dropout_cpu, registry) {
  registry.AddRow({"Dropout", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
