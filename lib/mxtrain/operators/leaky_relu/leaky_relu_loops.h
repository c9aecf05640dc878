// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops of LeakyReLU, written once for both devices: Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/broadcast_index.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/leaky_relu/leaky_relu.h"
#include "mxtrain/operators/leaky_relu/leaky_relu_functions.h"
#include "mxtrain/operators/leaky_relu/slope_sums.h"

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

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "LeakyReLU", [&](auto tag) {
      MapElements<typename decltype(tag)::type>(Device{ctx.run_ctx}, out[0], req[0],
                                                Value<Function>{function_}, in[0]);
    });
  }
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in,
                std::span<const TBlob> out, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    const TBlob& x = from_output_ ? out[0] : in[0];
    SwitchFloating(in_grad[0].type, "LeakyReLU", [&](auto tag) {
      MapElements<typename decltype(tag)::type>(Device{ctx.run_ctx}, in_grad[0], req[0],
                                                Gradient<Function>{function_}, out_grad[0], x);
    });
  }

 private:
  Function function_;
  bool from_output_;
};

template <typename T>
struct PReLUValue {
  const T *x, *gamma;
  BroadcastIndex channel;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    using A = AccumulatorOf<T>;
    return A(x[i]) > 0 ? A(x[i]) : A(gamma[channel(i)]) * A(x[i]);
  }
};
template <typename T>
struct PReLUGradient {
  const T *head, *x, *gamma;
  BroadcastIndex channel;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    using A = AccumulatorOf<T>;
    return A(head[i]) * (A(x[i]) > 0 ? A(1) : A(gamma[channel(i)]));
  }
};
template <typename A>
struct SumAt {
  const double* sums;
  MXTRAIN_HD A operator()(int64_t i) const { return static_cast<A>(sums[i]); }
};

template <typename T>
const double* SumSlopes(const OnCpu&, const SlopeSums& sums, const T* head, const T* x,
                        double* workspace) {
  return sums.Run(head, x, workspace);
}
template <typename Device, typename T>
const double* SumSlopes(const Device& device, const SlopeSums& sums, const T* head, const T* x,
                        double* workspace) {
  return sums.RunRows(device, head, x, workspace);
}

template <typename Device>
class PReLU final : public Operator {
 public:
  PReLU(BroadcastIndex channel, const SlopeSums& sums) : channel_(channel), sums_(sums) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapOn<T>(Device{ctx.run_ctx}, out[0], req[0],
               PReLUValue<T>{in[0].dptr<T>(), in[1].dptr<T>(), channel_});
    });
  }
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in,
                std::span<const TBlob>, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    const Device device{ctx.run_ctx};
    SwitchFloating(in_grad[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *head = out_grad[0].dptr<T>(), *x = in[0].dptr<T>();
      MapOn<T>(device, in_grad[0], req[0], PReLUGradient<T>{head, x, in[1].dptr<T>(), channel_});
      if (req[1] == OpReqType::kNullOp) return;
      const double* sums = SumSlopes(device, sums_, head, x, ctx.workspace.dptr<double>());
      MapOn<T>(device, in_grad[1], req[1], SumAt<AccumulatorOf<T>>{sums});
    });
  }

 private:
  BroadcastIndex channel_;
  SlopeSums sums_;
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

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    const Device device{ctx.run_ctx};
    SwitchFloating(in[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const RandomSlope<T> slope{lower_, width_, ctx.is_train, ctx.requested[0].Draws()};
      MapOn<T>(device, out[1], req[1], slope);
      MapOn<T>(device, out[0], req[0], RReLUValue<T>{in[0].dptr<T>(), slope});
    });
  }
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>,
                std::span<const TBlob> out, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "LeakyReLU", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapOn<T>(Device{ctx.run_ctx}, in_grad[0], req[0],
               RReLUGradient<T>{out_grad[0].dptr<T>(), out[0].dptr<T>(), out[1].dptr<T>()});
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
  const SlopeSums sums(request.in[0].shape, gamma);
  plan.backward_workspace = request.needs_backward ? sums.workspace_bytes() : 0;
  plan.make = [channel = BroadcastIndex(request.in[0].shape, gamma), sums] {
    return std::make_unique<PReLU<Device>>(channel, sums);
  };
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
