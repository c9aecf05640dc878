// SPDX-License-Identifier: Apache-2.0
#pragma once
// smooth_l1(x), with s = scalar: 0.5 s^2 x^2 if |x| < 1 / s^2, else |x| - 0.5 / s^2 (Girshick,
// "Fast R-CNN", 2015). Written once for both devices: Device is OnCpu or OnGpu; each device's file
// registers the functions.
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::smooth_l1 {

template <typename T>
struct Value {
  T s2;
  MXTRAIN_HD T operator()(T x) const {
    return x > 1 / s2 ? x - T(0.5) / s2 : x < -1 / s2 ? -x - T(0.5) / s2 : T(0.5) * s2 * x * x;
  }
};
template <typename T>
struct Gradient {
  T s2;
  MXTRAIN_HD T operator()(T head, T x) const {
    return head * (x > 1 / s2 ? T(1) : x < -1 / s2 ? T(-1) : s2 * x);
  }
};

template <typename Device>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  SwitchFloating(ret->type, "smooth_l1", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *ret, req, Value<C>{static_cast<C>(env.scalar * env.scalar)}, src);
  });
}

template <typename Device>
void Backward(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad,
              OpReqType req, RunContext ctx) {
  SwitchFloating(in_grad->type, "smooth_l1", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *in_grad, req, Gradient<C>{static_cast<C>(env.scalar * env.scalar)},
                   head.data, in.data);
  });
}

}  // namespace mxtrain::smooth_l1
