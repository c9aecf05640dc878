// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dual numbers: a value and its derivative with respect to one variable. A function written for any
// number type T gives its own slope: f(Dual(x, 1)).slope (forward-mode differentiation; Griewank
// and Walther, "Evaluating Derivatives", chapter 3). For device code too.
#include "mxtrain/operator/vector_math.h"

namespace mxtrain {

template <typename T>
struct Dual {
  T value = T(0), slope = T(0);

  Dual() = default;
  template <typename V>
  MXTRAIN_HD explicit constexpr Dual(V constant) : value(static_cast<T>(constant)) {}
  MXTRAIN_HD constexpr Dual(T its_value, T its_slope) : value(its_value), slope(its_slope) {}

  MXTRAIN_HD friend constexpr Dual operator+(Dual a, Dual b) {
    return {a.value + b.value, a.slope + b.slope};
  }
  MXTRAIN_HD friend constexpr Dual operator-(Dual a, Dual b) {
    return {a.value - b.value, a.slope - b.slope};
  }
  MXTRAIN_HD friend constexpr Dual operator-(Dual a) { return {-a.value, -a.slope}; }
  MXTRAIN_HD friend constexpr Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  MXTRAIN_HD friend constexpr Dual operator/(Dual a, Dual b) {
    const T quotient = a.value / b.value;
    return {quotient, (a.slope - quotient * b.slope) / b.value};
  }
  MXTRAIN_HD constexpr Dual& operator+=(Dual other) { return *this = *this + other; }
  MXTRAIN_HD constexpr Dual& operator-=(Dual other) { return *this = *this - other; }
  MXTRAIN_HD constexpr Dual& operator*=(Dual other) { return *this = *this * other; }
  MXTRAIN_HD constexpr Dual& operator/=(Dual other) { return *this = *this / other; }
  MXTRAIN_HD friend constexpr bool operator==(Dual a, Dual b) { return a.value == b.value; }
  MXTRAIN_HD friend constexpr bool operator<(Dual a, Dual b) { return a.value < b.value; }
  MXTRAIN_HD friend constexpr bool operator>(Dual a, Dual b) { return a.value > b.value; }
  MXTRAIN_HD friend constexpr bool operator<=(Dual a, Dual b) { return a.value <= b.value; }
  MXTRAIN_HD friend constexpr bool operator>=(Dual a, Dual b) { return a.value >= b.value; }
};

namespace vector_math {

// condition ? a : b, member by member, which keeps a loop vectorizable.
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline T Choose(bool condition, T a, T b) {
  return condition ? a : b;
}
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline Dual<T> Choose(bool condition, Dual<T> a, Dual<T> b) {
  return {condition ? a.value : b.value, condition ? a.slope : b.slope};
}

template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline Dual<T> Exp(Dual<T> x) {
  const T y = Exp(x.value);
  return {y, x.slope * y};
}
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline Dual<T> Tanh(Dual<T> x) {
  const T y = Tanh(x.value);
  return {y, x.slope * (T(1) - y * y)};
}
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline Dual<T> Sigmoid(Dual<T> x) {
  const T y = Sigmoid(x.value);
  return {y, x.slope * y * (T(1) - y)};
}
// log(1 + e^x), whose derivative is the sigmoid function.
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline Dual<T> Softplus(Dual<T> x) {
  return {Softplus(x.value), x.slope * Sigmoid(x.value)};
}
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline Dual<T> Log(Dual<T> x) {
  return {Log(x.value), x.slope / x.value};
}
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline Dual<T> Log1p(Dual<T> x) {
  return {Log1p(x.value), x.slope / (T(1) + x.value)};
}
// For x > 0.
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline Dual<T> Pow(Dual<T> x, Dual<T> y) {
  const T power = Pow(x.value, y.value);
  return {power, x.slope * y.value * Pow(x.value, y.value - T(1)) + y.slope * power * Log(x.value)};
}
// The derivative is 2 / sqrt(pi) e^(-x^2).
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline Dual<T> Erf(Dual<T> x) {
  return {Erf(x.value), x.slope * T(1.1283791670955126) * Exp(-x.value * x.value)};
}

}  // namespace vector_math
}  // namespace mxtrain
