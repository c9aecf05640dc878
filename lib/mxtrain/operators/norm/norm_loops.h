// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of norm, as reductions.
#include <cmath>

#include "mxtrain/operators/norm/norm.h"
#include "mxtrain/operators/reduce/reduce_loops.h"

namespace mxtrain::norm {

struct AbsoluteSum : reduce::Sum {
  static constexpr const char* kName = "norm";
  static constexpr reduce::SlopeReads kSlopeReads = reduce::SlopeReads::kInput;
  MXTRAIN_HD static double Step(double sum, double x) { return sum + std::abs(x); }
  MXTRAIN_HD static double Slope(double x, double, double) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
};
struct Euclidean : reduce::Sum {
  static constexpr const char* kName = "norm";
  static constexpr reduce::SlopeReads kSlopeReads = reduce::SlopeReads::kResult;
  MXTRAIN_HD static double Step(double sum, double x) { return sum + x * x; }
  MXTRAIN_HD static double End(double sum, double) { return std::sqrt(sum); }
  MXTRAIN_HD static double Slope(double x, double y, double) { return y == 0 ? 0 : x / y; }
};

// f(Functor{}) for the requested order.
template <typename F>
void SwitchOrder(const EnvArguments& env, F f) {
  if (env.As<NormParam>().ord == 1) {
    f(AbsoluteSum{});
  } else {
    f(Euclidean{});
  }
}

template <typename Device>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  const AxisFlags axes = reduce::FlagsOf(src.shape, env.As<NormParam>().Axes(), "norm");
  SwitchOrder(env, [&](auto f) {
    reduce::Reduce<decltype(f)>(Device{ctx}, src, axes, *ret, req, reduce::ScratchOf(env));
  });
}

template <typename Device>
void Backward(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad,
              OpReqType req, RunContext ctx) {
  const AxisFlags axes = reduce::FlagsOf(in_grad->shape, env.As<NormParam>().Axes(), "norm");
  SwitchOrder(env, [&](auto f) {
    reduce::SpreadHead<decltype(f)>(Device{ctx}, head.data, in.data.data, axes, *in_grad, req,
                                    reduce::ScratchOf(env));
  });
}

}  // namespace mxtrain::norm

MXTRAIN_KERNELS(norm, Device, registry) {
  mxtrain::SimpleOp(registry, "norm")
      .set_function(Device::kType, mxtrain::norm::Forward<Device>, mxtrain::kNoInplace)
      .set_gradient(Device::kType, mxtrain::norm::Backward<Device>, mxtrain::kNoInplace);
}
