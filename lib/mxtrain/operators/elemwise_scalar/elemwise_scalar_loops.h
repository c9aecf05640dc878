// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops of functions of an array and a number.
#include "mxtrain/operator/constant_slope.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operators/elemwise_binary/elemwise_binary.h"

namespace mxtrain::elemwise_scalar {

using elemwise_binary::Slopes;

// f(x, scalar).
template <typename F>
struct Direct {
  static constexpr bool kProduct =
      std::is_same_v<F, elemwise_binary::Multiply> || std::is_same_v<F, elemwise_binary::DivideOp>;
  static constexpr bool kSlopeReadsInput = F::kSlopes == Slopes::kInputs && !kProduct;
  static constexpr const char* kName = F::kScalarName;
  // Zero stays zero for any number.
  static constexpr Elementwise kElementwise =
      std::is_same_v<F, elemwise_binary::Multiply> ? Elementwise::kZeroToZero : Elementwise::kYes;
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD static T Value(T x, T s) {
    return F::Value(x, s) + T(0);  // keeps padding from becoming -0
  }
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD static T Slope(T x, T s) {
    return F::Left(x, s);
  }
};
// f(scalar, x).
template <typename F>
struct Reversed {
  static constexpr bool kSlopeReadsInput = F::kSlopes == Slopes::kInputs;
  static constexpr const char* kName = F::kReversedName;
  static constexpr Elementwise kElementwise = Elementwise::kYes;
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD static T Value(T x, T s) {
    return F::Value(s, x);
  }
  template <typename T>
  [[gnu::always_inline]] MXTRAIN_HD static T Slope(T x, T s) {
    return F::Right(s, x);
  }
};

template <typename F, typename C>
struct ValueOf {
  C scalar;
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C x) const { return F::Value(x, scalar); }
};
template <typename F, typename C>
struct HeadTimesSlope {
  C scalar;
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C head, C x) const {
    return head * F::Slope(x, scalar);
  }
};

template <typename Device, typename F>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  SwitchType(ret->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *ret, req, ValueOf<F, C>{static_cast<C>(env.scalar)}, src);
  });
}

template <typename Device, typename F>
void Gradient(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad,
              OpReqType req, RunContext ctx) {
  SwitchType(in_grad->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *in_grad, req, HeadTimesSlope<F, C>{static_cast<C>(env.scalar)},
                   head.data, in.data);
  });
}

template <typename Device, typename F>
void GradientWithoutInput(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad,
                          OpReqType req, RunContext ctx) {
  SwitchType(in_grad->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *in_grad, req,
                   HeadTimesConstant<C>{F::Slope(C(0), static_cast<C>(env.scalar))}, head.data);
  });
}

// v(Functor{}) for every function and every reversed one.
template <typename V>
void ForEachScalar(V&& v) {
  elemwise_binary::ForEachBinary([&v](auto f) {
    using F = decltype(f);
    v(Direct<F>{});
    if constexpr (*F::kReversedName != 0) v(Reversed<F>{});
  });
}

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  ForEachScalar([&registry](auto f) {
    using F = decltype(f);
    SimpleOp op(registry, std::string(F::kName) + "_scalar");
    op.set_function(Device::kType, Forward<Device, F>, kInplaceInOut);
    if constexpr (F::kSlopeReadsInput) {
      op.set_gradient(Device::kType, Gradient<Device, F>, kInplaceOutIn);
    } else {
      op.set_gradient(Device::kType, GradientWithoutInput<Device, F>, kInplaceOutIn);
    }
  });
}

}  // namespace mxtrain::elemwise_scalar

MXTRAIN_KERNELS(elemwise_scalar, Device, registry) {
  mxtrain::elemwise_scalar::AddKernels<Device>(registry);
}
