// SPDX-License-Identifier: Apache-2.0
#pragma once
// clip(x) = min(max(x, a_min), a_max); the gradient passes where a_min <= x <= a_max. Written once
// for both devices: Device is OnCpu or OnGpu.
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::clip {

struct ClipParam : Parameter<ClipParam> {
  double a_min = 0, a_max = 0;
  static void Declare(Fields<ClipParam>& f) {
    f.Add("a_min", &ClipParam::a_min).Required().AnyNumber().Help("lower bound");
    f.Add("a_max", &ClipParam::a_max).Required().AnyNumber().Help("upper bound");
  }
};

template <typename C>
struct Value {
  C low, high;
  MXTRAIN_HD C operator()(C x) const { return x < low ? low : x > high ? high : x; }
};
template <typename C>
struct Gradient {
  C low, high;
  MXTRAIN_HD C operator()(C head, C x) const { return x < low || x > high ? C(0) : head; }
};

template <typename Device>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  const auto& p = env.As<ClipParam>();
  SwitchType(ret->type, "clip", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *ret, req,
                   Value<C>{static_cast<C>(p.a_min), static_cast<C>(p.a_max)}, src);
  });
}

template <typename Device>
void Backward(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad,
              OpReqType req, RunContext ctx) {
  const auto& p = env.As<ClipParam>();
  SwitchType(in_grad->type, "clip", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *in_grad, req,
                   Gradient<C>{static_cast<C>(p.a_min), static_cast<C>(p.a_max)}, head.data,
                   in.data);
  });
}

}  // namespace mxtrain::clip

MXTRAIN_KERNELS(clip, Device, registry) {
  mxtrain::SimpleOp(registry, "clip")
      .set_function(Device::kType, mxtrain::clip::Forward<Device>, mxtrain::kInplaceInOut)
      .set_gradient(Device::kType, mxtrain::clip::Backward<Device>, mxtrain::kInplaceOutIn);
}
