// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elementwise_sum/elementwise_sum.h"

#include <algorithm>
#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plans.h"

namespace mxtrain {
namespace {

// Adds block by block, so that a block of partial sums stays in the first-level cache while the
// inputs stream by. The loops over a block are plain enough for the compiler to vectorize. Runs
// over stored elements, for any layout.
class ElementWiseSumCpu final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.out_data[0].type, "ElementWiseSum", [&](auto tag) {
      using T = typename decltype(tag)::type;
      SwitchReq(args.req[0], [&](auto accumulate) {
        ParallelFor(args.out_data[0].StoredSize(), kParallelGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i += kBlock)
            SumBlock<T, accumulate()>(args.in_data, args.out_data[0].dptr<T>(), i,
                                      std::min(kBlock, end - i));
        });
      });
    });
  }

  void Backward(const BackwardArgs& args) override {
    for (size_t i = 0; i < args.in_grad.size(); ++i)
      CopyBlob(args.ctx.run_ctx, args.req[i], args.out_grad[0], args.in_grad[i]);
  }

 private:
  static constexpr int64_t kBlock = 1024;

  template <typename T, bool kAccumulate>
  static void SumBlock(std::span<const TBlob> in, T* out, int64_t at, int64_t size) {
    using A = AccumulatorOf<T>;
    alignas(64) A sum[kBlock];
    const T* first = in[0].dptr<T>() + at;
    for (int64_t i = 0; i < size; ++i) sum[i] = A(first[i]);
    for (size_t k = 1; k < in.size(); ++k) {
      const T* next = in[k].dptr<T>() + at;
      for (int64_t i = 0; i < size; ++i) sum[i] += A(next[i]);
    }
    T* to = out + at;
    for (int64_t i = 0; i < size; ++i)
      to[i] = static_cast<T>(kAccumulate ? A(to[i]) + sum[i] : sum[i]);
  }
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& property, const PlanRequest& request,
                                      Backend&) {
  Plan plan = FlatPlan(property, request, true);
  plan.make = [] { return std::make_unique<ElementWiseSumCpu>(); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(elementwise_sum_cpu, registry) {
  registry.AddKernel(mxtrain::LastKernel<mxtrain::OnCpu>("ElementWiseSum", mxtrain::PlanReference));
}
