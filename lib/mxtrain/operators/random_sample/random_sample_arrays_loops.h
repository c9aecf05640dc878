// SPDX-License-Identifier: Apache-2.0
#pragma once
// A distribution per element, written once for both devices: Device is OnCpu or OnGpu.
#include <algorithm>
#include <memory>

#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/random_sample/random_sample_arrays.h"

namespace mxtrain::random_sample {

// Element i belongs to the distribution i / each.
template <typename V, typename D>
struct DrawOfArray {
  NumberReader first, second;  // parameters; the second one may be missing
  int64_t each;
  RandomDraws random;
  MXTRAIN_HD V operator()(int64_t i) const {
    const auto number = static_cast<uint64_t>(i);
    if constexpr (requires(double x) { D{x, x}; }) {
      return static_cast<V>(D{first.Number(i / each), second.Number(i / each)}(random, number));
    } else {
      return static_cast<V>(D{first.Number(i / each)}(random, number));
    }
  }
};

template <typename Device, typename D>
class SampleArrays final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    if (out.Size() == 0) return;
    SwitchFloating(out.type, "a random array", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using V = std::conditional_t<std::is_same_v<T, double>, double, float>;
      MapOn<T>(
          Device{args.ctx.run_ctx}, out, args.req[0],
          DrawOfArray<V, D>{NumberReader(args.in_data[0]), NumberReader(args.in_data.back()),
                            out.Size() / args.in_data[0].Size(), args.ctx.requested[0].Draws()});
    });
  }
};

template <typename Device, typename D>
Expected<Plan, Refusal> PlanArrays(const OperatorProperty& property, const PlanRequest& request,
                                   Backend&) {
  if (!IsFloating(request.out[0].type))
    return Refusal{format("no function for {}", NameOf(request.out[0].type))};
  Plan plan = PlainPlan(property, request);
  constexpr double kNanosecondsPerDraw = 20;
  plan.cost = kNanosecondsPerDraw * static_cast<double>(request.out[0].shape.Size());
  plan.make = []() -> std::unique_ptr<Operator> {
    return std::make_unique<SampleArrays<Device, D>>();
  };
  return plan;
}

}  // namespace mxtrain::random_sample

MXTRAIN_KERNELS(random_sample_arrays, Device, registry) {
  using namespace mxtrain;
  using namespace mxtrain::random_sample;
  ForEachArraySample([&registry](const char* name, const auto&, auto tag) {
    registry.AddKernel(LastKernel<Device>(name, PlanArrays<Device, typename decltype(tag)::type>,
                                          Takes::kEveryType));
  });
}
