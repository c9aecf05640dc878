// SPDX-License-Identifier: Apache-2.0
#pragma once
// hard_sigmoid(x) = min(max(alpha x + beta, 0), 1). Written once for both devices: Device is OnCpu
// or OnGpu.
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::hard_sigmoid {

struct HardSigmoidParam : Parameter<HardSigmoidParam> {
  double alpha = 0.2, beta = 0.5;
  static void Declare(Fields<HardSigmoidParam>& f) {
    f.Add("alpha", &HardSigmoidParam::alpha).Default(0.2).Help("slope");
    f.Add("beta", &HardSigmoidParam::beta).Default(0.5).Help("value at 0");
  }
};

template <typename C>
struct Value {
  C alpha, beta;
  MXTRAIN_HD C operator()(C x) const {
    const C y = alpha * x + beta;
    return y < C(0) ? C(0) : y > C(1) ? C(1) : y;
  }
};
// Zero if the output is 0 or 1.
template <typename C>
struct Gradient {
  C alpha;
  MXTRAIN_HD C operator()(C head, C y) const { return y > C(0) && y < C(1) ? head * alpha : C(0); }
};

template <typename Device>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  const auto& p = env.As<HardSigmoidParam>();
  SwitchFloating(ret->type, "hard_sigmoid", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *ret, req,
                   Value<C>{static_cast<C>(p.alpha), static_cast<C>(p.beta)}, src);
  });
}

template <typename Device>
void Backward(const OutputGrad& head, const OutputValue& out, const EnvArguments& env,
              TBlob* in_grad, OpReqType req, RunContext ctx) {
  SwitchFloating(in_grad->type, "hard_sigmoid", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(Device{ctx}, *in_grad, req,
                   Gradient<C>{static_cast<C>(env.As<HardSigmoidParam>().alpha)}, head.data,
                   out.data);
  });
}

}  // namespace mxtrain::hard_sigmoid

MXTRAIN_KERNELS(hard_sigmoid, Device, registry) {
  mxtrain::SimpleOp(registry, "hard_sigmoid")
      .set_function(Device::kType, mxtrain::hard_sigmoid::Forward<Device>, mxtrain::kInplaceInOut)
      .set_gradient(Device::kType, mxtrain::hard_sigmoid::Backward<Device>, mxtrain::kInplaceOutIn);
}
