// SPDX-License-Identifier: Apache-2.0
#pragma once
// A polynomial of every element: quadratic, a x^2 + b x + c.
#include "mxtrain/operator/elementwise_op.h"

namespace mxtrain {

struct QuadraticParam : Parameter<QuadraticParam> {
  double a, b, c;
  static void Declare(Fields<QuadraticParam>& f) {
    f.Add("a", &QuadraticParam::a).Default(0).Help("factor of x^2");
    f.Add("b", &QuadraticParam::b).Default(0).Help("factor of x");
    f.Add("c", &QuadraticParam::c).Default(0).Help("constant");
  }
};
struct Quadratic {
  static constexpr const char* kName = "quadratic";
  static constexpr const char* kDescription = "a x^2 + b x + c, for every element x";
  using Param = QuadraticParam;
  double a, b, c;
  explicit Quadratic(const QuadraticParam& param) : a(param.a), b(param.b), c(param.c) {}
  template <typename T>
  MXTRAIN_HD T operator()(T x) const {
    return (T(a) * x + T(b)) * x + T(c);
  }
};

}  // namespace mxtrain

MXTRAIN_KERNELS(quadratic, Device, registry) {
  using namespace mxtrain;
  AddElementwise<Device, Quadratic>(registry);
  if constexpr (std::is_same_v<Device, OnCpu>)
    SimpleOp(registry, Quadratic::kName).add_alias("_contrib_quadratic");
}
