// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays of random numbers, written once for both devices: Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/random_sample/random_sample.h"

namespace mxtrain::random_sample {

// Draw i of the node, computed by `draw` from the parameters.
template <typename V, typename Draw>
struct DrawAt {
  Draw draw;
  RandomDraws random;
  MXTRAIN_HD V operator()(int64_t i) const {
    return static_cast<V>(draw(random, static_cast<uint64_t>(i)));
  }
};

template <typename Device, typename P>
class Sample final : public Operator {
 public:
  explicit Sample(const P& param) : draw_(param.Drawing()) {}
  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.out_data[0].type, "a random array", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using V = std::conditional_t<std::is_same_v<T, double>, double, float>;
      MapOn<T>(Device{args.ctx.run_ctx}, args.out_data[0], args.req[0],
               DrawAt<V, typename P::Draw>{draw_, args.ctx.requested[0].Draws()});
    });
  }

 private:
  typename P::Draw draw_;
};

template <typename Device, typename P>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  if (!IsFloating(request.out[0].type))
    return Refusal{format("no function for {}", NameOf(request.out[0].type))};
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
  registry.AddKernel(LastKernel<Device>("_random_uniform", MakePlan<Device, UniformParam>));
  registry.AddKernel(LastKernel<Device>("_random_normal", MakePlan<Device, NormalParam>));
}
