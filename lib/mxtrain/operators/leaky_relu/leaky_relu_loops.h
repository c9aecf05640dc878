// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops of LeakyReLU, written once for both devices: Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/reduction.h"
#include "mxtrain/operators/leaky_relu/leaky_relu.h"
#include "mxtrain/operators/leaky_relu/leaky_relu_functions.h"

namespace mxtrain::leaky_relu {

template <typename Function>
struct Value {
  Function function;
  template <typename C>
  MXTRAIN_HD C operator()(C x) const {
    return function.Value(x);
  }
};
template <typename Function>
struct Gradient {
  Function function;
  template <typename C>
  MXTRAIN_HD C operator()(C head, C x) const {
    return head * function.Gradient(x);
  }
};

// leaky, elu, selu, gelu: a loop over stored elements, for any layout; all map zero to zero.
template <typename Device, typename Function>
class Rectifier final : public Operator {
 public:
  Rectifier(Function function, bool from_output) : function_(function), from_output_(from_output) {}

  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.in_data[0].type, "LeakyReLU", [&](auto tag) {
      MapElements<typename decltype(tag)::type>(Device{args.ctx.run_ctx}, args.out_data[0],
                                                args.req[0], Value<Function>{function_},
                                                args.in_data[0]);
    });
  }
  void Backward(const BackwardArgs& args) override {
    const TBlob& x = from_output_ ? args.out_data[0] : args.in_data[0];
    SwitchFloating(args.in_grad[0].type, "LeakyReLU", [&](auto tag) {
      MapElements<typename decltype(tag)::type>(Device{args.ctx.run_ctx}, args.in_grad[0],
                                                args.req[0], Gradient<Function>{function_},
                                                args.out_grad[0], x);
    });
  }

 private:
  Function function_;
  bool from_output_;
};

struct PReLUValue {
  template <typename C>
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C x, C gamma) const {
    return x > 0 ? x : gamma * x;
  }
};
struct PReLUGradient {
  template <typename C>
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C head, C x, C gamma) const {
    return head * (x > 0 ? C(1) : gamma);
  }
};
// One term of the gradient of gamma, which is a sum in double.
struct GammaTerm {
  template <typename C>
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C head, C x) const {
    return x > 0 ? C(0) : head * x;
  }
};

template <typename Device>
class PReLU final : public Operator {
 public:
  // The shape of gamma has the rank of the data.
  explicit PReLU(const TShape& gamma) : gamma_(gamma) {}

  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.in_data[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapBroadcast<T>(Device{args.ctx.run_ctx}, args.out_data[0], args.req[0], PReLUValue{},
                      Broadcast<T>(args.in_data[0]),
                      Broadcast<T>(args.in_data[1].dptr<T>(), gamma_));
    });
  }
  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    TBlob gamma_grad = args.in_grad[1];
    gamma_grad.shape = gamma_;
    SwitchFloating(args.in_grad[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Broadcast<T> head(args.out_grad[0]), x(args.in_data[0]);
      MapBroadcast<T>(device, args.in_grad[0], args.req[0], PReLUGradient{}, head, x,
                      Broadcast<T>(args.in_data[1].dptr<T>(), gamma_));
      SumBroadcast<T>(device, x.shape, gamma_grad, args.req[1], args.ctx.workspace.dptr<double>(),
                      GammaTerm{}, head, x);
    });
  }

 private:
  TShape gamma_;
};

// Rounded to T, so that the output matches the stored mask.
template <typename T>
struct RandomSlope {
  float lower, width;
  bool draws;
  RandomDraws random;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    return static_cast<AccumulatorOf<T>>(
        static_cast<T>(lower + width * (draws ? random.Uniform(static_cast<uint64_t>(i)) : 0.5f)));
  }
};
template <typename T>
struct RReLUValue {
  const T* x;
  RandomSlope<T> slope;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    using A = AccumulatorOf<T>;
    return A(x[i]) > 0 ? A(x[i]) : slope(i) * A(x[i]);
  }
};
template <typename T>
struct RReLUGradient {
  const T *head, *y, *mask;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    using A = AccumulatorOf<T>;
    return A(head[i]) * (A(y[i]) > 0 ? A(1) : A(mask[i]));
  }
};

template <typename Device>
class RReLU final : public Operator {
 public:
  explicit RReLU(const LeakyReLUParam& param)
      : lower_(param.lower_bound), width_(param.upper_bound - param.lower_bound) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_data[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const RandomSlope<T> slope{lower_, width_, args.ctx.is_train, args.ctx.requested[0].Draws()};
      MapOn<T>(device, args.out_data[1], args.req[1], slope);
      MapOn<T>(device, args.out_data[0], args.req[0],
               RReLUValue<T>{args.in_data[0].dptr<T>(), slope});
    });
  }
  void Backward(const BackwardArgs& args) override {
    SwitchFloating(args.in_grad[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapOn<T>(Device{args.ctx.run_ctx}, args.in_grad[0], args.req[0],
               RReLUGradient<T>{args.out_grad[0].dptr<T>(), args.out_data[0].dptr<T>(),
                                args.out_data[1].dptr<T>()});
    });
  }

 private:
  float lower_, width_;
};

template <typename Device, typename Function>
Plan PlanRectifier(const LeakyReLUProperty& property, const PlanRequest& request,
                   Function function) {
  Plan plan = FlatPlan(property, request, true);
  plan.make = [function, from_output = property.GradientFromOutput()] {
    return std::make_unique<Rectifier<Device, Function>>(function, from_output);
  };
  return plan;
}

template <typename Device>
Plan PlanPReLU(const LeakyReLUProperty& property, const PlanRequest& request) {
  Plan plan = PlainPlan(property, request);
  const TShape gamma = LeakyReLUProperty::ExpandGamma(request.in[1].shape, request.in[0].shape);
  if (request.needs_backward) plan.backward_workspace = SumScratchBytes(request.in[0].shape, gamma);
  plan.make = [gamma] { return std::make_unique<PReLU<Device>>(gamma); };
  return plan;
}

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const LeakyReLUProperty&>(base);
  const LeakyReLUParam& param = property.param();
  switch (param.act_type) {
    case kLeaky:
      return PlanRectifier<Device>(property, request, LeakyFunction{param.slope});
    case kELU:
      return PlanRectifier<Device>(property, request,
                                   ELUFunction{param.slope, property.GradientFromOutput()});
    case kSELU:
      return PlanRectifier<Device>(property, request, SELUFunction{});
    case kGELU:
      return PlanRectifier<Device>(property, request, GELUFunction{});
    case kPReLU:
      return PlanPReLU<Device>(property, request);
    default:
      break;
  }
  Plan plan = PlainPlan(property, request);
  plan.make = [param] { return std::make_unique<RReLU<Device>>(param); };
  return plan;
}

}  // namespace mxtrain::leaky_relu

MXTRAIN_KERNELS(leaky_relu, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("LeakyReLU", leaky_relu::MakePlan<Device>));
}
