// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constant arrays, written once for all devices.
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/view_moves.h"
#include "mxtrain/operators/constant_arrays/constant_arrays.h"

namespace mxtrain::constant_arrays {

// Element i as a number in which elements of T are computed.
template <typename T, typename F>
struct ElementsAs {
  F f;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<int64_t>(WrappingInt(f(i)));
    } else {
      return static_cast<AccumulatorOf<T>>(f(i));
    }
  }
};

template <typename Device, typename F>
class Constant final : public Operator {
 public:
  explicit Constant(const F& f) : f_(f) {}
  void Forward(const ForwardArgs& args) override {
    SwitchType(args.out_data[0].type, "a constant array", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapOn<T>(Device{args.ctx.run_ctx}, args.out_data[0], args.req[0], ElementsAs<T, F>{f_});
    });
  }

 private:
  F f_;
};

template <typename Device, typename P>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  const TensorSpec& out = request.out[0];
  Plan plan = PlainPlan(property, request);
  // An array that gives its shape alone is not read.
  for (size_t i = 0; i < plan.in.size(); ++i) plan.in[i] = request.in_layout[i].value_or(Layout());
  plan.cost = MoveCost(static_cast<double>(out.shape.Size() * SizeOf(out.type)));
  const auto f = static_cast<const PropertyWithParam<P>&>(property).param().ElementsOf(out.shape);
  plan.make = [f]() -> std::unique_ptr<Operator> {
    return std::make_unique<Constant<Device, std::decay_t<decltype(f)>>>(f);
  };
  return plan;
}

template <typename Device, typename P>
void AddKernel(OperatorRegistry& registry, const char* op) {
  registry.AddKernel(LastKernel<Device>(op, MakePlan<Device, P>, Takes::kEveryType));
}

}  // namespace mxtrain::constant_arrays

MXTRAIN_KERNELS(constant_arrays, Device, registry) {
  using namespace mxtrain::constant_arrays;
  AddKernel<Device, ConstantParam<0>>(registry, "_zeros");
  AddKernel<Device, ConstantParam<1>>(registry, "_ones");
  AddKernel<Device, FullParam>(registry, "_full");
  AddKernel<Device, ArangeParam>(registry, "_arange");
  AddKernel<Device, LinspaceParam>(registry, "_linspace");
  AddKernel<Device, EyeParam>(registry, "_eye");
  AddKernel<Device, FullLikeParam>(registry, "full_like");
  AddKernel<Device, ArangeLikeParam>(registry, "arange_like");
}
