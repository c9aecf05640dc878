// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops of functions of one argument.
#include "mxtrain/operator/constant_slope.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operators/elemwise_unary/elemwise_unary.h"

namespace mxtrain::elemwise_unary {

template <typename F>
struct ValueOf {
  template <typename C>
  MXTRAIN_HD C operator()(C x) const {
    return F::Value(x);
  }
};
// head * Slope(v).
template <typename F>
struct HeadTimesSlope {
  template <typename C>
  MXTRAIN_HD C operator()(C head, C v) const {
    return head * F::Slope(v);
  }
};

// body(TypeTag<T>{}) for a type that F supports.
template <typename F, typename Body>
void SwitchTypesOf(DType type, Body&& body) {
  if constexpr (F::kIntegers) {
    SwitchType(type, F::kName, body);
  } else {
    SwitchFloating(type, F::kName, body);
  }
}

template <typename Device, typename F>
void Forward(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  SwitchTypesOf<F>(ret->type, [&](auto tag) {
    MapElements<typename decltype(tag)::type>(Device{ctx}, *ret, req, ValueOf<F>{}, src);
  });
}

template <typename Device, typename F>
void Multiply(const TBlob& head, const TBlob& v, TBlob* in_grad, OpReqType req, RunContext ctx) {
  SwitchTypesOf<F>(in_grad->type, [&](auto tag) {
    MapElements<typename decltype(tag)::type>(Device{ctx}, *in_grad, req, HeadTimesSlope<F>{}, head,
                                              v);
  });
}
template <typename Device, typename F>
void GradientOfInput(const OutputGrad& head, const Input0& in, const EnvArguments&, TBlob* in_grad,
                     OpReqType req, RunContext ctx) {
  Multiply<Device, F>(head.data, in.data, in_grad, req, ctx);
}
template <typename Device, typename F>
void GradientOfOutput(const OutputGrad& head, const OutputValue& out, const EnvArguments&,
                      TBlob* in_grad, OpReqType req, RunContext ctx) {
  Multiply<Device, F>(head.data, out.data, in_grad, req, ctx);
}
// One for all functions whose slope reads nothing.
template <typename Device>
void TimesConstant(double slope, const TBlob& head, TBlob* in_grad, OpReqType req, RunContext ctx) {
  SwitchType(in_grad->type, "a constant slope", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *in_grad, req, HeadTimesConstant<C>{static_cast<C>(slope)}, head);
  });
}
template <typename Device, typename F>
void ConstantGradient(const OutputGrad& head, const EnvArguments&, TBlob* in_grad, OpReqType req,
                      RunContext ctx) {
  TimesConstant<Device>(F::Slope(0.0), head.data, in_grad, req, ctx);
}

// The kernels of every function.
template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  ForEachUnary([&registry](auto f) {
    using F = decltype(f);
    SimpleOp op(registry, F::kName);
    op.set_function(Device::kType, Forward<Device, F>, kInplaceInOut);
    if constexpr (F::kSlopeOf == SlopeOf::kInput) {
      op.set_gradient(Device::kType, GradientOfInput<Device, F>, kInplaceOutIn);
    } else if constexpr (F::kSlopeOf == SlopeOf::kOutput) {
      op.set_gradient(Device::kType, GradientOfOutput<Device, F>, kInplaceOutIn);
    } else {
      op.set_gradient(Device::kType, ConstantGradient<Device, F>, kInplaceOutIn);
    }
  });
}

}  // namespace mxtrain::elemwise_unary

MXTRAIN_KERNELS(elemwise_unary, Device, registry) {
  mxtrain::elemwise_unary::AddKernels<Device>(registry);
}
