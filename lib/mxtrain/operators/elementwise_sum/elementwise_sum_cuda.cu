// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elementwise_sum/elementwise_sum.h"

#include <algorithm>
#include <memory>

#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operator/identity.cuh"

namespace mxtrain {
namespace {

constexpr size_t kMostTerms = 32;  // addresses that fit the arguments of one kernel

struct AddTwo {
  template <typename C>
  MXTRAIN_HD C operator()(C a, C b) const {
    return a + b;
  }
};

template <typename T>
struct SumOfTerms {
  const T* term[kMostTerms];
  int count;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    AccumulatorOf<T> sum = 0;
    for (int k = 0; k < count; ++k) sum += AccumulatorOf<T>(term[k][i]);
    return sum;
  }
};

// Over stored elements, for any layout. Terms beyond the limit of a kernel are added in further
// passes over the output.
class ElementWiseSumCuda final : public Operator {
 public:
  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    const OnGpu device{ctx.run_ctx};
    SwitchFloating(out[0].type, "ElementWiseSum", [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (in.size() == 2) return MapElements<T>(device, out[0], req[0], AddTwo{}, in[0], in[1]);
      for (size_t first = 0; first < in.size(); first += kMostTerms) {
        SumOfTerms<T> sum{};
        for (const TBlob& term : in.subspan(first, std::min(kMostTerms, in.size() - first)))
          sum.term[sum.count++] = term.dptr<T>();
        MapOn<T>(device, out[0],
                 first == 0 || req[0] == OpReqType::kNullOp ? req[0] : OpReqType::kAddTo, sum);
      }
    });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>,
                std::span<const TBlob>, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    for (size_t i = 0; i < in_grad.size(); ++i)
      CopyBlob(OnGpu{ctx.run_ctx}, req[i], out_grad[0], in_grad[i]);
  }
};

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(elementwise_sum_cuda, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<OnGpu>("ElementWiseSum",
                                       [](const OperatorProperty& base, const PlanRequest& request,
                                          Backend&) -> Expected<Plan, Refusal> {
                                         Plan plan = FlatPlan(base, request, true);
                                         plan.make = [] {
                                           return std::make_unique<ElementWiseSumCuda>();
                                         };
                                         return plan;
                                       }));
}
