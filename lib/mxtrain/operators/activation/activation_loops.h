// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activation as a loop over stored elements, for any layout; written once for both devices: Device
// is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/activation/activation.h"
#include "mxtrain/operators/activation/activation_functions.h"

namespace mxtrain {

template <typename F>
void SwitchActivation(int act_type, F&& f) {
  switch (act_type) {
    case kReLU:
      return f(ReLUFunction{});
    case kSigmoid:
      return f(SigmoidFunction{});
    case kTanh:
      return f(TanhFunction{});
    case kSoftReLU:
      return f(SoftReLUFunction{});
    case kSoftSign:
      return f(SoftSignFunction{});
    default:
      MXTRAIN_ASSERT(false);
  }
}

template <typename Function>
struct ActivationValue {
  template <typename C>
  MXTRAIN_HD C operator()(C x) const {
    return Function().Value(x);
  }
};
// `v` is the input or the output, as the property declares.
template <typename Function>
struct ActivationGradient {
  template <typename C>
  MXTRAIN_HD C operator()(C head, C v) const {
    return head * Function().Gradient(v, v);
  }
};

template <typename Device>
class ActivationLoop final : public Operator {
 public:
  explicit ActivationLoop(const ActivationParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.in_data[0].type, "Activation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      SwitchActivation(param_.act_type, [&](auto function) {
        MapElements<T>(Device{args.ctx.run_ctx}, args.out_data[0], args.req[0],
                       ActivationValue<decltype(function)>{}, args.in_data[0]);
      });
    });
  }

  void Backward(const BackwardArgs& args) override {
    const TBlob& v = param_.act_type == kSoftSign ? args.in_data[0] : args.out_data[0];
    SwitchFloating(args.in_grad[0].type, "Activation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      SwitchActivation(param_.act_type, [&](auto function) {
        MapElements<T>(Device{args.ctx.run_ctx}, args.in_grad[0], args.req[0],
                       ActivationGradient<decltype(function)>{}, args.out_grad[0], v);
      });
    });
  }

 private:
  ActivationParam param_;
};

template <typename Device>
KernelEntry ActivationKernel() {
  return LastKernel<Device>(
      "Activation",
      [](const OperatorProperty& base, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        const auto& property = static_cast<const ActivationProperty&>(base);
        Plan plan = FlatPlan(property, request, property.elementwise() == Elementwise::kZeroToZero);
        plan.make = [param = property.param()] {
          return std::make_unique<ActivationLoop<Device>>(param);
        };
        return plan;
      });
}

}  // namespace mxtrain

MXTRAIN_KERNELS(activation, Device, registry) {
  registry.AddKernel(mxtrain::ActivationKernel<Device>());
}
