// The meaning of LRN in loops.
#include <cmath>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/lrn/lrn_windows.h"

namespace mxtrain {
namespace {

class LRNReference final : public Operator {
 public:
  explicit LRNReference(const LRNParam& param) : param_(param) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "LRN", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T* x = in[0].dptr<T>();
      const A beta = param_.beta;
      const LRNWindows windows{param_, in[0].shape};
      const auto norm = [windows, x](int64_t at) { return windows.Norm(x, at); };
      Map<T>(ctx.run_ctx, out[1], req[1], norm);
      Map<T>(ctx.run_ctx, out[0], req[0], [x, norm, beta](int64_t at) { return A(x[at]) * std::pow(norm(at), -beta); });
    });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "LRN", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T* x = in[0].dptr<T>();
      const T* g = out_grad[0].dptr<T>();
      const A beta = param_.beta, scale = A(2) * beta * A(param_.alpha) / A(param_.nsize);
      Map<T>(ctx.run_ctx, in_grad[0], req[0], [=, windows = LRNWindows{param_, in[0].shape}](int64_t at) {
        A sum = 0;
        windows.ForCells(at, [&](int64_t j) { sum += A(g[j]) * A(x[j]) * std::pow(windows.Norm(x, j), -beta - A(1)); });
        return A(g[at]) * std::pow(windows.Norm(x, at), -beta) - scale * A(x[at]) * sum;
      });
    });
  }

 private:
  LRNParam param_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  Plan plan = PlainPlan(base, request);
  if (request.needs_backward) plan.backward_reads = BackwardReads{{true, false}, {true}, {false, false}};  // the norm is computed again
  plan.make = [param = static_cast<const LRNProperty&>(base).param()] { return std::make_unique<LRNReference>(param); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(lrn_cpu, registry) {
  registry.AddRow({"LRN", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
