// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operators/optimizer_update/update_plan.h"

namespace mxtrain::optimizer_update {
namespace {

template <bool kWrite, bool kAdd, typename Rule, typename T>
[[gnu::always_inline]] inline void Loop(int64_t begin, int64_t end, const Rule& rule,
                                        const Arrays<T>& a) {
  using C = ComputeOf<T>;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const C w = UpdateAt<Rule, C>(rule, a, i);
    if constexpr (kWrite) a.out[i] = static_cast<T>(kAdd ? static_cast<C>(a.out[i]) + w : w);
  }
}
// The version that every training step runs.
template <typename Rule>
MXTRAIN_SIMD void WriteLoop(int64_t begin, int64_t end, Rule rule, Arrays<float> a) {
  Loop<true, false>(begin, end, rule, a);
}

constexpr int64_t kBlock = 4096;  // elements of a partial sum

template <template <typename> class Rule>
class Update final : public Operator {
 public:
  using Param = typename Rule<float>::Param;
  Update(const Param& param, int64_t longest) : param_(param) {
    if constexpr (kHasRatio<Rule<float>>)
      block_sums_.resize(static_cast<size_t>(BlocksOf(longest)));
  }

  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.in_data[0].type, "an optimizer", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      for (size_t n = 0; n < args.out_data.size(); ++n) {
        const Rule<C> rule(
            StepOf<C>(args.in_data.back().dptr<float>() + n * kNumScalars, param_.clip_gradient),
            param_);
        if (rule.Skipped()) {
          CopyBlob(args.ctx.run_ctx, args.req[n], args.in_data[n], args.out_data[n]);
        } else {
          UpdateWeight(rule, args.in_data[n].StoredSize(), args.req[n],
                       ArraysOf<T>(Places(n, args.out_data.size(), kStatesOf<Rule<C>>),
                                   args.in_data, args.out_data, args.aux_states));
        }
      }
    });
  }

 private:
  static int64_t BlocksOf(int64_t size) { return CeilDivide(size, kBlock); }

  template <typename R, typename T>
  void UpdateWeight(R rule, int64_t size, OpReqType req, const Arrays<T>& arrays) {
    if constexpr (kHasRatio<R>) Measure(size, arrays, &rule);
    ParallelFor(size, kParallelGrain, [&](int64_t begin, int64_t end) {
      if (req == OpReqType::kNullOp) {
        Loop<false, false>(begin, end, rule, arrays);
      } else if (req == OpReqType::kAddTo) {
        Loop<true, true>(begin, end, rule, arrays);
      } else if constexpr (std::is_same_v<T, float>) {
        WriteLoop(begin, end, rule, arrays);
      } else {
        Loop<true, false>(begin, end, rule, arrays);
      }
    });
  }

  // Sums of squares in double, in blocks of fixed size and order: the same for any number of
  // threads.
  template <typename T, typename R>
  void Measure(int64_t size, const Arrays<T>& arrays, R* rule) {
    const std::span<Squares> block_sums =
        std::span(block_sums_).first(static_cast<size_t>(BlocksOf(size)));
    ParallelFor(BlocksOf(size), std::max<int64_t>(1, kParallelGrain / kBlock),
                [&](int64_t begin, int64_t end) {
                  for (int64_t b = begin; b < end; ++b) {
                    Squares sum;
                    for (int64_t i = b * kBlock; i < std::min(size, (b + 1) * kBlock); ++i)
                      sum = sum + MeasureAt<R, ComputeOf<T>>(*rule, arrays, i);
                    block_sums[static_cast<size_t>(b)] = sum;
                  }
                });
    Squares whole;
    for (const Squares& sum : block_sums) whole = whole + sum;
    rule->ratio = RatioOf(*rule, whole);
  }

  Param param_;
  std::vector<Squares> block_sums_;  // used by Measure
};

}  // namespace

MXTRAIN_OPERATOR(optimizer_update_cpu, registry) {
  ForEachRule([&registry](auto tag) {
    using Tag = decltype(tag);
    const char* const op = Tag::template Rule<float>::kName;
    registry.AddKernel(
        {op, DeviceType::kCPU, "ref", kRefRank,
         [](const OperatorProperty& property, const PlanRequest& request, Backend&) {
           return MakePlan<Tag::template Rule>(
               property, request,
               [](const auto& param, const std::vector<int64_t>& sizes, Plan* plan) {
                 plan->make = [param, longest = *std::max_element(sizes.begin(), sizes.end())] {
                   return std::make_unique<Update<Tag::template Rule>>(param, longest);
                 };
               });
         }});
  });
}

}  // namespace mxtrain::optimizer_update
