#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operators/optimizer_update/update_plan.h"

namespace mxtrain::optimizer_update {
namespace {

// What every kernel of an update gets. The numbers of the step are read on the device: a recorded step sees those of its day.
template <typename Rule, typename T>
struct Call {
  using C = ComputeOf<T>;
  typename Rule::Param param;
  const float* scalars;
  Arrays<T> arrays;
  MXTRAIN_HD Rule MakeRule() const { return Rule(StepOf<C>(scalars, param.clip_gradient), param); }
};

template <typename Rule, typename T>
struct Measured {
  Call<Rule, T> call;
  MXTRAIN_HD Squares operator()(int64_t i) const {
    const Rule rule = call.MakeRule();
    return rule.LeftOut() ? Squares() : MeasureAt<Rule, ComputeOf<T>>(rule, call.arrays, i);
  }
};
template <typename Rule, typename T>
struct SetRatio {
  Call<Rule, T> call;
  const Squares* sums;
  ComputeOf<T>* ratio;
  MXTRAIN_HD void operator()(int64_t) const { *ratio = RatioOf(call.MakeRule(), *sums); }
};

template <typename Rule, typename T>
struct Updated {
  using C = ComputeOf<T>;
  Call<Rule, T> call;
  OpReqType req;
  const C* ratio;
  MXTRAIN_HD void operator()(int64_t i) const {
    Rule rule = call.MakeRule();
    if constexpr (kHasRatio<Rule>) rule.ratio = *ratio;
    const C w = rule.LeftOut() ? static_cast<C>(call.arrays.weight[i]) : UpdateAt<Rule, C>(rule, call.arrays, i);
    if (req != OpReqType::kNullOp) Assign(req, call.arrays.out, i, w);
  }
};

Slices SlicesOf(int64_t stored_size) {
  return Slices(1, stored_size);
}
// Of rules with a ratio: the sums, then the ratio.
int64_t WorkspaceBytes(int64_t stored_size) {
  return BytesOfSum<Squares>(SlicesOf(stored_size)) + static_cast<int64_t>(sizeof(double));
}

template <template <typename> class Rule>
class Update final : public Operator {
 public:
  using Param = typename Rule<float>::Param;
  explicit Update(const Param& param) : param_(param) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob> aux) override {
    const OnGpu device{ctx.run_ctx};
    SwitchFloating(in[0].type, "an optimizer", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      Call<Rule<C>, T> call{param_, in[2].dptr<float>(), {in[0].dptr<T>(), in[1].dptr<T>(), {}, out[0].dptr<T>()}};
      for (size_t i = 0; i < aux.size(); ++i) call.arrays.states[i] = aux[i].dptr<T>();
      const C* ratio = Ratio(device, call, in[0].StoredSize(), ctx.workspace);
      Launch(device, in[0].StoredSize(), Updated<Rule<C>, T>{call, req[0], ratio});
    });
  }

 private:
  template <typename R, typename T>
  static const ComputeOf<T>* Ratio(const OnGpu& device, const Call<R, T>& call, int64_t size, const TBlob& workspace) {
    if constexpr (kHasRatio<R>) {
      const Slices slices = SlicesOf(size);
      const Squares* sums = SumTerms(device, slices, Measured<R, T>{call}, workspace.dptr<Squares>());
      auto* ratio = reinterpret_cast<ComputeOf<T>*>(workspace.dptr<char>() + BytesOfSum<Squares>(slices));
      Launch(device, 1, SetRatio<R, T>{call, sums, ratio});
      return ratio;
    } else {
      return nullptr;
    }
  }

  Param param_;
};

}  // namespace

MXTRAIN_OPERATOR(optimizer_update_cuda, registry) {
  ForEachRule([&registry](const char* op, auto tag) {
    using Tag = decltype(tag);
    registry.AddRow(LastRow<OnGpu>(op, [](const OperatorProperty& property, const PlanRequest& request, Backend&) {
      return MakePlan<Tag::template Rule>(property, request, [](const auto& param, int64_t stored_size, Plan* plan) {
        if (kHasRatio<typename Tag::template Rule<float>>) plan->forward_workspace = WorkspaceBytes(stored_size);
        plan->make = [param] { return std::make_unique<Update<Tag::template Rule>>(param); };
      });
    }));
  });
}

}  // namespace mxtrain::optimizer_update
