// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions on one element, for host and device. T is float or double. Gradient is the
// derivative; it gets the one of input x and output y that the property declares (the other is a
// dummy).
#include <cmath>

#include "mxtrain/base/macros.h"
#include "mxtrain/operator/vector_math.h"

namespace mxtrain {

struct ReLUFunction {
  template <typename T>
  MXTRAIN_HD T Value(T x) const {
    return x < 0 ? T(0) : x;
  }  // NaN stays NaN
  template <typename T>
  MXTRAIN_HD T Gradient(T, T y) const {
    return y > 0 ? T(1) : T(0);
  }
};

struct SigmoidFunction {
  template <typename T>
  MXTRAIN_HD T Value(T x) const {
    return vector_math::Sigmoid(x);
  }
  template <typename T>
  MXTRAIN_HD T Gradient(T, T y) const {
    return y * (T(1) - y);
  }
};

struct TanhFunction {
  template <typename T>
  MXTRAIN_HD T Value(T x) const {
    return vector_math::Tanh(x);
  }
  template <typename T>
  MXTRAIN_HD T Gradient(T, T y) const {
    return T(1) - y * y;
  }
};

struct SoftReLUFunction {
  template <typename T>
  MXTRAIN_HD T Value(T x) const {
    return x > T(20) ? x : std::log1p(std::exp(x));
  }
  template <typename T>
  MXTRAIN_HD T Gradient(T, T y) const {
    return -std::expm1(-y);
  }
};

struct SoftSignFunction {
  template <typename T>
  MXTRAIN_HD T Value(T x) const {
    return x / (T(1) + std::abs(x));
  }
  template <typename T>
  MXTRAIN_HD T Gradient(T x, T) const {
    const T d = T(1) + std::abs(x);
    return T(1) / (d * d);
  }
};

}  // namespace mxtrain
