// SPDX-License-Identifier: Apache-2.0
#pragma once
// An element-wise operator of one argument from one functor:
//
//   struct Swish {
//     static constexpr const char* kName = "swish";
//     static constexpr const char* kDescription = "x sigmoid(beta x), for every element x";
//     using Param = SwishParam;  // NoParam, ScalarParam, or a struct of parameters
//     double beta;
//     explicit Swish(const SwishParam& param) : beta(param.beta) {}
//     template <typename T>
//     MXTRAIN_HD T operator()(T x) const {
//       return x * vector_math::Sigmoid(T(beta) * x);
//     }
//   };
//   MXTRAIN_KERNELS(swish, Device, registry) {
//     mxtrain::AddElementwise<Device, Swish>(registry);
//   }
//
// T is float, double, or a dual number of these (dual.h), which gives the gradient. Whether padding
// stays zero is found by evaluation at 0.
#include "mxtrain/operator/dual.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain {

// The single parameter `scalar`.
struct ScalarParam {
  double scalar;
};

namespace detail {

// body(functor) for the parameters of a call. A functor F may stand for several: then F::Visit
// calls body with the one that its parameters select.
template <typename F, typename Body>
void WithFunctor(const EnvArguments& env, const Body& body) {
  if constexpr (requires { F::Visit(env.As<typename F::Param>(), body); }) {
    F::Visit(env.As<typename F::Param>(), body);
  } else if constexpr (std::is_same_v<typename F::Param, ScalarParam>) {
    body(F(ScalarParam{env.scalar}));
  } else if constexpr (std::is_same_v<typename F::Param, NoParam>) {
    body(F());
  } else {
    body(F(env.As<typename F::Param>()));
  }
}

// The added zero keeps padding from becoming -0.
template <typename F>
struct ValueOfFunctor {
  F f;
  template <typename C>
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C x) const {
    return f(x) + C(0);
  }
};
template <typename F>
struct GradientOfFunctor {
  F f;
  template <typename C>
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C head, C x) const {
    return head * f(Dual<C>(x, C(1))).slope + C(0);
  }
};

template <typename Device, typename F>
void ElementwiseForward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
                        RunContext ctx) {
  WithFunctor<F>(env, [&](auto f) {
    SwitchFloating(ret->type, F::kName, [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapElements<T>(Device{ctx}, *ret, req, ValueOfFunctor<decltype(f)>{f}, src);
    });
  });
}
template <typename Device, typename F>
void ElementwiseBackward(const OutputGrad& head, const Input0& in, const EnvArguments& env,
                         TBlob* in_grad, OpReqType req, RunContext ctx) {
  WithFunctor<F>(env, [&](auto f) {
    SwitchFloating(in_grad->type, F::kName, [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapElements<T>(Device{ctx}, *in_grad, req, GradientOfFunctor<decltype(f)>{f}, head.data,
                     in.data);
    });
  });
}

template <typename F>
Elementwise ElementwiseOf(const EnvArguments& env) {
  Dual<float> at_zero;
  WithFunctor<F>(env, [&](auto f) { at_zero = f(Dual<float>(0.0f, 1.0f)); });
  return at_zero.value == 0 && std::isfinite(at_zero.slope) ? Elementwise::kZeroToZero
                                                            : Elementwise::kYes;
}

}  // namespace detail

// Registers F::kName with its kernel for Device; parameters and description with that for the CPU.
template <typename Device, typename F>
void AddElementwise(OperatorRegistry& registry) {
  SimpleOp op(registry, F::kName);
  op.set_function(Device::kType, detail::ElementwiseForward<Device, F>, kInplaceInOut)
      .set_gradient(Device::kType, detail::ElementwiseBackward<Device, F>, kInplaceOutIn);
  if constexpr (std::is_same_v<Device, OnCpu>) {
    op.set_types(kFloatingTypes)
        .set_elementwise(detail::ElementwiseOf<F>)
        .set_mixed_precision({MixedPrecision::kFollows})
        .describe(F::kDescription);
    if constexpr (std::is_same_v<typename F::Param, ScalarParam>) {
      op.set_enable_scalar(true);
    } else if constexpr (!std::is_same_v<typename F::Param, NoParam>) {
      op.template set_kwargs_struct<typename F::Param>();
    }
  }
}

}  // namespace mxtrain
