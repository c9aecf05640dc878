// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops of binary functions of arrays of one shape.
#include "mxtrain/operator/constant_slope.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operators/elemwise_binary/elemwise_binary.h"

namespace mxtrain::elemwise_binary {

template <typename F>
struct ValueOf {
  template <typename C>
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C a, C b) const {
    return F::Value(a, b);
  }
};
template <typename F>
struct HeadTimesLeft {
  template <typename C>
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C head, C a, C b) const {
    return head * F::Left(a, b);
  }
};
template <typename F>
struct HeadTimesRight {
  template <typename C>
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C head, C a, C b) const {
    return head * F::Right(a, b);
  }
};
template <typename Device, typename F>
void Forward(const TBlob& lhs, const TBlob& rhs, const EnvArguments&, TBlob* ret, OpReqType req,
             RunContext ctx) {
  SwitchType(ret->type, F::kName, [&](auto tag) {
    MapElements<typename decltype(tag)::type>(Device{ctx}, *ret, req, ValueOf<F>{}, lhs, rhs);
  });
}

// The left gradient may share memory with the head gradient, so the right one comes first.
template <typename Device, typename F>
void Gradient(const OutputGrad& head, const Input0& lhs, const Input1& rhs, const EnvArguments&,
              TBlob* lhs_grad, TBlob* rhs_grad, OpReqType req_lhs, OpReqType req_rhs,
              RunContext ctx) {
  SwitchType(head.data.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MapElements<T>(Device{ctx}, *rhs_grad, req_rhs, HeadTimesRight<F>{}, head.data, lhs.data,
                   rhs.data);
    MapElements<T>(Device{ctx}, *lhs_grad, req_lhs, HeadTimesLeft<F>{}, head.data, lhs.data,
                   rhs.data);
  });
}
// One for all functions whose slopes read nothing.
template <typename Device>
void TimesConstants(double left, double right, const TBlob& head, TBlob* lhs_grad, TBlob* rhs_grad,
                    OpReqType req_lhs, OpReqType req_rhs, RunContext ctx) {
  SwitchType(head.type, "constant slopes", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    const HeadTimesConstant<C> by_left{static_cast<C>(left)}, by_right{static_cast<C>(right)};
    MapElements<T>(Device{ctx}, *rhs_grad, req_rhs, by_right, head);
    MapElements<T>(Device{ctx}, *lhs_grad, req_lhs, by_left, head);
  });
}
template <typename Device, typename F>
void ConstantGradient(const OutputGrad& head, const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad,
                      OpReqType req_lhs, OpReqType req_rhs, RunContext ctx) {
  TimesConstants<Device>(F::Left(0.0, 0.0), F::Right(0.0, 0.0), head.data, lhs_grad, rhs_grad,
                         req_lhs, req_rhs, ctx);
}

template <typename Device, typename F>
void AddKernel(OperatorRegistry& registry, const char* name) {
  SimpleOp op(registry, name);
  op.set_function(Device::kType, Forward<Device, F>, kInplaceLhsOut);
  if constexpr (F::kSlopes == Slopes::kInputs) {
    op.set_gradient(Device::kType, Gradient<Device, F>, kInplaceOutLhs);
  } else {
    op.set_gradient(Device::kType, ConstantGradient<Device, F>, kInplaceOutLhs);
  }
}

// The kernels of every function, and of the sum of two gradients.
template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  ForEachBinary([&registry](auto f) { AddKernel<Device, decltype(f)>(registry, f.kName); });
  AddKernel<Device, Add>(registry, "_grad_add");
}

}  // namespace mxtrain::elemwise_binary

MXTRAIN_KERNELS(elemwise_binary, Device, registry) {
  mxtrain::elemwise_binary::AddKernels<Device>(registry);
}
