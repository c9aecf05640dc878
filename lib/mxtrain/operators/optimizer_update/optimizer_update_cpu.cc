// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/number_loop.h"
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
constexpr int64_t kAhead = 3;     // rows that are prefetched

template <template <typename> class Rule>
class Update final : public Operator {
 public:
  using Param = typename Rule<float>::Param;
  Update(const Param& param, int64_t longest, int64_t rows, int64_t listed) : param_(param) {
    if constexpr (kHasRatio<Rule<float>>)
      block_sums_.resize(static_cast<size_t>(BlocksOf(longest)));
    seen_.resize(static_cast<size_t>(rows));
    rows_.reserve(static_cast<size_t>(std::min(rows, listed)));
  }

  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.in_data[0].type, "an optimizer", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      if (param_.rows) return UpdateRows<T>(args);
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

  template <typename T>
  void UpdateRows(const ForwardArgs& args) {
    using R = Rule<ComputeOf<T>>;
    const TBlob &weight = args.in_data[0], &cleared = args.out_data[1];
    const int64_t count = weight.shape[0], width = weight.Size() / std::max<int64_t>(1, count);
    if (args.req[0] == OpReqType::kAddTo || args.req[1] == OpReqType::kAddTo)
      Throw(ErrorKind::kConfig, "{}: rows = True: the result cannot be added to an array",
            R::kName);
    if (args.req[0] == OpReqType::kNullOp || args.req[1] == OpReqType::kNullOp) return;
    CopyBlob(args.ctx.run_ctx, args.req[0], weight, args.out_data[0]);  // nothing, in place
    CopyBlob(args.ctx.run_ctx, args.req[1], args.in_data[1], cleared);
    FindRows(args.in_data[kRows], count);
    const R rule(StepOf<ComputeOf<T>>(args.in_data.back().dptr<float>(), param_.clip_gradient),
                 param_);
    const Arrays<T> arrays =
        ArraysOf<T>(Places(0, 1, kStatesOf<R>), args.in_data, args.out_data, args.aux_states);
    ParallelFor(std::ssize(rows_),
                std::max<int64_t>(1, kNumbersOfThread / std::max<int64_t>(1, width)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    if (r + kAhead < end) PrefetchRow<R>(arrays, r + kAhead, width);
                    const int64_t first = rows_[static_cast<size_t>(r)] * width;
                    if (!rule.Skipped()) UpdateRange(rule, first, first + width, arrays);
                    std::fill_n(cleared.dptr<T>() + first, width, T(0));
                  }
                });
  }

  // The gradient was written in backward, and is in the caches as a rule.
  template <typename R, typename T>
  void PrefetchRow(const Arrays<T>& arrays, int64_t r, int64_t width) const {
    const int64_t first = rows_[static_cast<size_t>(r)] * width;
    PrefetchNumbers<true>(arrays.out + first, width);
    for (size_t k = 0; k < kStatesOf<R>; ++k)
      PrefetchNumbers<true>(arrays.states[k] + first, width);
  }

  template <typename R, typename T>
  static void UpdateRange(const R& rule, int64_t begin, int64_t end, const Arrays<T>& arrays) {
    if constexpr (std::is_same_v<T, float>) {
      WriteLoop(begin, end, rule, arrays);
    } else {
      Loop<true, false>(begin, end, rule, arrays);
    }
  }

  // Each row once, in the order in which they come first.
  void FindRows(const TBlob& listed, int64_t count) {
    if (++turn_ == 0) {
      std::fill(seen_.begin(), seen_.end(), 0);
      turn_ = 1;
    }
    rows_.clear();
    if (count == 0) return;
    ForNumbers(listed, 0, listed.Size(), [&](int64_t, double, int64_t index) {
      const int64_t row = std::clamp<int64_t>(index, 0, count - 1);
      if (std::exchange(seen_[static_cast<size_t>(row)], turn_) != turn_) rows_.push_back(row);
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
  // Used by FindRows: the rows of this call; for each row of the weight the last call that had it.
  std::vector<int64_t> rows_;
  std::vector<uint32_t> seen_;
  uint32_t turn_ = 0;
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
               [&request](const auto& param, const std::vector<int64_t>& sizes, Plan* plan) {
                 const int64_t rows = param.rows ? request.in[0].shape[0] : 0,
                               listed = param.rows ? request.in[kRows].shape.Size() : 0;
                 plan->make = [param, longest = *std::max_element(sizes.begin(), sizes.end()), rows,
                               listed] {
                   return std::make_unique<Update<Tag::template Rule>>(param, longest, rows,
                                                                       listed);
                 };
               });
         }});
  });
}

}  // namespace mxtrain::optimizer_update
