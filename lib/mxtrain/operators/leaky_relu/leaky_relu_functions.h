// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions on one element, for host and device; T is float or double. Gradient is the
// derivative given x, which is the input or the output as the property declares; both have the same
// sign.
#include <cmath>

#include "mxtrain/base/macros.h"

namespace mxtrain {

struct LeakyFunction {
  double slope;
  template <typename T>
  MXTRAIN_HD T Value(T x) const {
    return x > 0 ? x : T(slope) * x;
  }
  template <typename T>
  MXTRAIN_HD T Gradient(T x) const {
    return x > 0 ? T(1) : T(slope);
  }
};

// Below zero the derivative is the output plus the slope.
struct ELUFunction {
  double slope;
  bool from_output;
  template <typename T>
  MXTRAIN_HD T Value(T x) const {
    return x > 0 ? x : T(slope) * std::expm1(x);
  }
  template <typename T>
  MXTRAIN_HD T Gradient(T x) const {
    return x > 0 ? T(1) : from_output ? x + T(slope) : T(slope) * std::exp(x);
  }
};

struct SELUFunction {
  static constexpr double kLambda = 1.0507009873554805, kAlpha = 1.6732632423543772;
  template <typename T>
  MXTRAIN_HD T Value(T x) const {
    return T(kLambda) * (x > 0 ? x : T(kAlpha) * std::expm1(x));
  }
  // The output y already includes lambda; the derivative would be y + lambda alpha. As in MXNet.
  template <typename T>
  MXTRAIN_HD T Gradient(T y) const {
    return T(kLambda) * (y > 0 ? T(1) : T(kAlpha) + y);
  }
};

struct GELUFunction {
  static constexpr double kRootHalf = 0.70710678118654752440;  // 1 / sqrt(2)
  static constexpr double kDensity = 0.39894228040143267794;   // 1 / sqrt(2 pi)
  template <typename T>
  MXTRAIN_HD T Value(T x) const {
    return T(0.5) * x * (T(1) + std::erf(x * T(kRootHalf)));
  }
  template <typename T>
  MXTRAIN_HD T Gradient(T x) const {
    return T(0.5) * (T(1) + std::erf(x * T(kRootHalf))) +
           x * T(kDensity) * std::exp(T(-0.5) * x * x);
  }
};

}  // namespace mxtrain
