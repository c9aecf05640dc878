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
  void Forward(const ForwardArgs& args) override {
    const OnGpu device{args.ctx.run_ctx};
    SwitchFloating(args.out_data[0].type, "ElementWiseSum", [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (args.in_data.size() == 2)
        return MapElements<T>(device, args.out_data[0], args.req[0], AddTwo{}, args.in_data[0],
                              args.in_data[1]);
      for (size_t first = 0; first < args.in_data.size(); first += kMostTerms) {
        SumOfTerms<T> sum{};
        for (const TBlob& term :
             args.in_data.subspan(first, std::min(kMostTerms, args.in_data.size() - first)))
          sum.term[sum.count++] = term.dptr<T>();
        MapOn<T>(device, args.out_data[0],
                 first == 0 || args.req[0] == OpReqType::kNullOp ? args.req[0] : OpReqType::kAddTo,
                 sum);
      }
    });
  }

  void Backward(const BackwardArgs& args) override {
    for (size_t i = 0; i < args.in_grad.size(); ++i)
      CopyBlob(OnGpu{args.ctx.run_ctx}, args.req[i], args.out_grad[0], args.in_grad[i]);
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
