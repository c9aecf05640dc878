#include <algorithm>
#include <vector>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operators/optimizer_update/update_plan.h"

namespace mxtrain::optimizer_update {
namespace {

template <bool kWrite, bool kAdd, typename Rule, typename T>
[[gnu::always_inline]] inline void Loop(int64_t begin, int64_t end, const Rule& rule, const Arrays<T>& a) {
  using C = ComputeOf<T>;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const C w = UpdateAt<Rule, C>(rule, a, i);
    if constexpr (kWrite) a.out[i] = static_cast<T>(kAdd ? static_cast<C>(a.out[i]) + w : w);
  }
}
// The form that every step of a training runs.
template <typename Rule>
MXTRAIN_SIMD void WriteLoop(int64_t begin, int64_t end, Rule rule, Arrays<float> a) {
  Loop<true, false>(begin, end, rule, a);
}

constexpr int64_t kBlock = 4096;  // elements of a partial sum

template <template <typename> class Rule>
class Update final : public Operator {
 public:
  using Param = typename Rule<float>::Param;
  Update(const Param& param, int64_t stored_size) : param_(param) {
    if constexpr (kHasRatio<Rule<float>>) block_sums_.resize(static_cast<size_t>((stored_size + kBlock - 1) / kBlock));
  }

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob> aux) override {
    SwitchFloating(in[0].type, "an optimizer", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      Rule<C> rule(StepOf<C>(in[2].dptr<float>(), param_.clip_gradient), param_);
      if (rule.LeftOut()) return CopyBlob(ctx.run_ctx, req[0], in[0], out[0]);
      Arrays<T> arrays{in[0].dptr<T>(), in[1].dptr<T>(), {}, out[0].dptr<T>()};
      for (size_t i = 0; i < aux.size(); ++i) arrays.states[i] = aux[i].dptr<T>();
      if constexpr (kHasRatio<Rule<C>>) Measure(in[0].StoredSize(), arrays, &rule);
      ParallelFor(in[0].StoredSize(), kParallelGrain, [&](int64_t begin, int64_t end) {
        if (req[0] == OpReqType::kNullOp) {
          Loop<false, false>(begin, end, rule, arrays);
        } else if (req[0] == OpReqType::kAddTo) {
          Loop<true, true>(begin, end, rule, arrays);
        } else if constexpr (std::is_same_v<T, float>) {
          WriteLoop(begin, end, rule, arrays);
        } else {
          Loop<true, false>(begin, end, rule, arrays);
        }
      });
    });
  }

 private:
  // Sums of squares in double, in blocks of one size and in their order: the same for any number of threads.
  template <typename T, typename R>
  void Measure(int64_t size, const Arrays<T>& arrays, R* rule) {
    ParallelFor(static_cast<int64_t>(block_sums_.size()), std::max<int64_t>(1, kParallelGrain / kBlock), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Squares sum;
        for (int64_t i = b * kBlock; i < std::min(size, (b + 1) * kBlock); ++i) sum = sum + MeasureAt<R, ComputeOf<T>>(*rule, arrays, i);
        block_sums_[static_cast<size_t>(b)] = sum;
      }
    });
    Squares whole;
    for (const Squares& sum : block_sums_) whole = whole + sum;
    rule->ratio = RatioOf(*rule, whole);
  }

  Param param_;
  std::vector<Squares> block_sums_;  // of Measure
};

}  // namespace

MXTRAIN_OPERATOR(optimizer_update_cpu, registry) {
  ForEachRule([&registry](const char* op, auto tag) {
    using Tag = decltype(tag);
    registry.AddRow({op, DeviceType::kCPU, "ref", kRefRank, [](const OperatorProperty& property, const PlanRequest& request, Backend&) {
                       return MakePlan<Tag::template Rule>(property, request, [](const auto& param, int64_t stored_size, Plan* plan) {
                         plan->make = [param, stored_size] { return std::make_unique<Update<Tag::template Rule>>(param, stored_size); };
                       });
                     }});
  });
}

}  // namespace mxtrain::optimizer_update
