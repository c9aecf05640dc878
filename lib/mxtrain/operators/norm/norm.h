// SPDX-License-Identifier: Apache-2.0
#pragma once
// norm: the sum of absolute values (ord 1) or the root of the sum of squares (ord 2) over axes. The
// gradient is g sign(x) or g x / norm; 0 if the norm is 0. Written once for both devices: Device is
// OnCpu or OnGpu.
#include <cmath>

#include "mxtrain/operators/reduce/reduce_loops.h"

namespace mxtrain::norm {

using reduce::Groups;
using reduce::MakeGroups;
using reduce::ReduceParam;

struct NormParam : Parameter<NormParam> {
  int ord = 2;
  std::optional<TShape> axis;
  bool keepdims = false;
  std::optional<DType> out_dtype;
  static void Declare(Fields<NormParam>& f) {
    f.Add("ord", &NormParam::ord)
        .Default(2)
        .Range(1, 2)
        .Help("1: sum of absolute values; 2: Euclidean");
    f.Add("axis", &NormParam::axis)
        .Default(std::nullopt)
        .Help("axes to reduce, negative from the end; None: all");
    f.Add("keepdims", &NormParam::keepdims).Default(false).Help("keep reduced axes with length 1");
    f.Add("out_dtype", &NormParam::out_dtype)
        .Default(std::nullopt)
        .Help("None; only the type of the data is supported");
  }
  ReduceParam Axes() const {
    ReduceParam axes;
    axes.axis = axis;
    axes.keepdims = keepdims;
    return axes;
  }
};

struct AbsoluteSum : reduce::Sum {
  MXTRAIN_HD static double Step(double sum, double x) { return sum + std::abs(x); }
  MXTRAIN_HD static double Slope(double x, double, double) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
};
struct Euclidean : reduce::Sum {
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
  const Groups groups = MakeGroups(src.shape, env.As<NormParam>().Axes(), "norm");
  SwitchFloating(src.type, "norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = src.dptr<T>();
    SwitchOrder(env, [&](auto f) {
      reduce::ReduceGroups<decltype(f)>(Device{ctx}, x, groups, ret->dptr<T>(), req);
    });
  });
}

template <typename Device>
void Backward(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad,
              OpReqType req, RunContext ctx) {
  const Groups groups = MakeGroups(in_grad->shape, env.As<NormParam>().Axes(), "norm");
  SwitchFloating(in_grad->type, "norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = in.data.dptr<T>();
    SwitchOrder(env, [&](auto f) {
      reduce::SpreadHead<decltype(f), T>(Device{ctx}, head.data, x, groups, in_grad, req);
    });
  });
}

}  // namespace mxtrain::norm
