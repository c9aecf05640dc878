// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays of random numbers, written once for both devices: Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/random_sample/random_sample.h"

namespace mxtrain::random_sample {

// Element i of the node, computed by `draw` from the parameters.
template <typename V, typename Draw>
struct DrawAt {
  Draw draw;
  RandomDraws random;
  MXTRAIN_HD V operator()(int64_t i) const {
    return static_cast<V>(draw(random, static_cast<uint64_t>(i)));
  }
};

// f(TypeTag) for a type in which numbers of P are stored.
template <typename P, typename F>
void SwitchSample(DType type, F f) {
  if constexpr (P::kIntegers) {
    type == DType::kInt64 ? f(TypeTag<int64_t>{}) : f(TypeTag<int32_t>{});
  } else {
    SwitchFloating(type, "a random array", f);
  }
}

template <typename Device, typename P>
class Sample final : public Operator {
 public:
  explicit Sample(const P& param) : draw_(param.Drawing()) {}
  void Forward(const ForwardArgs& args) override {
    SwitchSample<P>(args.out_data[0].type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using V = std::conditional_t<std::is_same_v<T, double> || std::is_integral_v<T>, T, float>;
      MapOn<T>(Device{args.ctx.run_ctx}, args.out_data[0], args.req[0],
               DrawAt<V, Draw>{draw_, args.ctx.requested[0].Draws()});
    });
  }

 private:
  using Draw = decltype(std::declval<P>().Drawing());
  Draw draw_;
};

template <typename Device, typename P>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  const DType type = request.out[0].type;
  const bool fits =
      P::kIntegers ? type == DType::kInt32 || type == DType::kInt64 : IsFloating(type);
  if (!fits) return Refusal{format("no function for {}", NameOf(type))};
  Plan plan;
  plan.out = {Layout()};
  constexpr double kNanosecondsPerDraw = 10;
  plan.cost = kNanosecondsPerDraw * static_cast<double>(request.out[0].shape.Size());
  plan.make = [param = static_cast<const PropertyWithParam<P>&>(property).param()]()
      -> std::unique_ptr<Operator> { return std::make_unique<Sample<Device, P>>(param); };
  return plan;
}

}  // namespace mxtrain::random_sample

MXTRAIN_KERNELS(random_sample, Device, registry) {
  using namespace mxtrain;
  using namespace mxtrain::random_sample;
  ForEachSample([&registry](const char* name, auto tag) {
    registry.AddKernel(LastKernel<Device>(name, MakePlan<Device, typename decltype(tag)::type>,
                                          Takes::kEveryType));
  });
}
