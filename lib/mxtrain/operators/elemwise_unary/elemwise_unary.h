// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of one argument: value and slope of each, for host and device. ForEachUnary is the
// table; a file per device registers the kernels.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "mxtrain/base/macros.h"
#include "mxtrain/operator/simple_op.h"
#include "mxtrain/operator/vector_math.h"

namespace mxtrain::elemwise_unary {

// The argument of Slope(v); the gradient is head * Slope(v).
enum class SlopeOf { kInput, kOutput, kConstant };

// NAME, the argument of its slope, its types, whether padding stays zero (value and slope at 0), y
// = VALUE(x), SLOPE(v).
#define MXTRAIN_UNARY(Id, name, slope, integers, elementwise, VALUE, SLOPE) \
  struct Id {                                                               \
    static constexpr const char* kName = name;                              \
    static constexpr SlopeOf kSlopeOf = SlopeOf::slope;                     \
    static constexpr bool kIntegers = integers;                             \
    static constexpr Elementwise kElementwise = Elementwise::elementwise;   \
    template <typename T>                                                   \
    MXTRAIN_HD static T Value([[maybe_unused]] T x) {                       \
      return static_cast<T>(VALUE);                                         \
    }                                                                       \
    template <typename T>                                                   \
    MXTRAIN_HD static T Slope([[maybe_unused]] T v) {                       \
      return static_cast<T>(SLOPE);                                         \
    }                                                                       \
  };

template <typename T>
MXTRAIN_HD T Sign(T x) {
  return static_cast<T>((x > T(0)) - (x < T(0)));
}
// Rounds to the nearest integer; halves round away from zero, or (Rint) down.
template <typename T>
MXTRAIN_HD T Round(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::round(x);
  else
    return x;
}
template <typename T>
MXTRAIN_HD T Floor(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::floor(x);
  else
    return x;
}
template <typename T>
MXTRAIN_HD T Rint(T x) {
  const T down = Floor(x), up = x > down ? static_cast<T>(down + 1) : down;
  return x - down > up - x ? up : down;  // of -0.5 + 2^-25 the smaller distance alone is exact
}
// The derivative of log(gamma(x)): recurrence up to x >= 6, then the asymptotic series (Abramowitz
// and Stegun 6.3.5, 6.3.7, 6.3.18).
template <typename T>
MXTRAIN_HD T Digamma(T argument) {
  constexpr double kPi = 3.14159265358979323846;
  double x = argument, shift = 0;
  if (x <= 0) {
    if (x == floor(x)) return static_cast<T>(x == 0 ? -HUGE_VAL : NAN);  // a pole
    shift = -kPi / tan(kPi * x);
    x = 1 - x;
  }
  for (; x < 10; x += 1) shift -= 1 / x;
  const double r = 1 / (x * x);
  const double series =
      r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132)))));
  return static_cast<T>(shift + log(x) - 0.5 / x - series);
}
// The derivative of digamma, likewise (6.4.6, 6.4.7, 6.4.12).
template <typename T>
MXTRAIN_HD T Trigamma(T argument) {
  constexpr double kPi = 3.14159265358979323846;
  double x = argument, sum = 0, sign = 1;
  if (x <= 0) {
    if (x == floor(x)) return static_cast<T>(HUGE_VAL);
    const double sine = sin(kPi * x);
    sum = kPi * kPi / (sine * sine);
    x = 1 - x;
    sign = -1;
  }
  double steps = 0;
  for (; x < 10; x += 1) steps += 1 / (x * x);
  const double r = 1 / (x * x);
  const double series =
      r / x * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42 - r * (1.0 / 30 - r * (5.0 / 66)))));
  return static_cast<T>(sum + sign * (steps + 1 / x + 0.5 * r + series));
}
// The inverse of erf: a rational initial value (Giles, "Approximating the erfinv function", 2010),
// then two Newton steps.
template <typename T>
MXTRAIN_HD T ErfInv(T argument) {
  const double y = argument;
  if (y <= -1 || y >= 1) return static_cast<T>(y == 1 || y == -1 ? y * HUGE_VAL : NAN);
  const double w = -log((1 - y) * (1 + y));
  double x = 0;
  if (w < 5) {
    const double s = w - 2.5;
    x = y * (1.50140941 +
             s * (0.246640727 + s * (-0.00417768164 + s * (-0.00125372503 + s * 0.00021858087))));
  } else {
    const double s = sqrt(w) - 3;
    x = y * (2.83297682 +
             s * (1.00167406 + s * (0.00943887047 + s * (-0.0076224613 + s * 0.00573950773))));
  }
  for (int step = 0; step < 3; ++step) x -= (erf(x) - y) / (1.1283791670955126 * exp(-x * x));
  return static_cast<T>(x);
}

// clang-format off
//            type        name            slope of   integers  padding         y(x)                              slope(v)
MXTRAIN_UNARY(Copy,       "_copy",        kConstant, true,  kZeroToZero, x,                                   1)
MXTRAIN_UNARY(Abs,        "abs",          kInput,    true,  kZeroToZero, x < T(0) ? -x : x,                   Sign(v))
MXTRAIN_UNARY(SignOp,     "sign",         kConstant, true,  kZeroToZero, Sign(x),                             0)
MXTRAIN_UNARY(RoundOp,    "round",        kConstant, true,  kZeroToZero, Round(x),                            0)
MXTRAIN_UNARY(RintOp,     "rint",         kConstant, true,  kZeroToZero, Rint(x),                             0)
MXTRAIN_UNARY(Ceil,       "ceil",         kConstant, true,  kZeroToZero, -Floor(-x),                          0)
MXTRAIN_UNARY(FloorOp,    "floor",        kConstant, true,  kZeroToZero, Floor(x),                            0)
MXTRAIN_UNARY(Trunc,      "trunc",        kConstant, true,  kZeroToZero, x < T(0) ? -Floor(-x) : Floor(x),    0)
MXTRAIN_UNARY(Fix,        "fix",          kConstant, true,  kZeroToZero, x < T(0) ? -Floor(-x) : Floor(x),    0)
MXTRAIN_UNARY(Square,     "square",       kInput,    true,  kZeroToZero, x * x,                               2 * v)
MXTRAIN_UNARY(Sqrt,       "sqrt",         kOutput,   false, kYes,        std::sqrt(x),                        T(0.5) / v)
MXTRAIN_UNARY(Rsqrt,      "rsqrt",        kOutput,   false, kYes,        T(1) / std::sqrt(x),                 T(-0.5) * v * v * v)
MXTRAIN_UNARY(Cbrt,       "cbrt",         kOutput,   false, kYes,        std::cbrt(x),                        T(1) / (T(3) * v * v))
MXTRAIN_UNARY(Rcbrt,      "rcbrt",        kOutput,   false, kYes,        T(1) / std::cbrt(x),                 v * v * v * v / T(-3))
MXTRAIN_UNARY(Reciprocal, "reciprocal",   kOutput,   false, kYes,        T(1) / x,                            -v * v)
MXTRAIN_UNARY(Exp,        "exp",          kOutput,   false, kYes,        vector_math::Exp(x),                 v)
MXTRAIN_UNARY(Expm1,      "expm1",        kOutput,   false, kZeroToZero, std::expm1(x),                       v + T(1))
MXTRAIN_UNARY(Log,        "log",          kInput,    false, kYes,        vector_math::Log(x),                 T(1) / v)
MXTRAIN_UNARY(Log10,      "log10",        kInput,    false, kYes,        std::log10(x),                       T(0.4342944819032518) / v)
MXTRAIN_UNARY(Log2,       "log2",         kInput,    false, kYes,        std::log2(x),                        T(1.4426950408889634) / v)
MXTRAIN_UNARY(Log1p,      "log1p",        kInput,    false, kZeroToZero, vector_math::Log1p(x),               T(1) / (T(1) + v))
MXTRAIN_UNARY(Sin,        "sin",          kInput,    false, kZeroToZero, std::sin(x),                         std::cos(v))
MXTRAIN_UNARY(Cos,        "cos",          kInput,    false, kYes,        std::cos(x),                         -std::sin(v))
MXTRAIN_UNARY(Tan,        "tan",          kOutput,   false, kZeroToZero, std::tan(x),                         T(1) + v * v)
MXTRAIN_UNARY(Arcsin,     "arcsin",       kInput,    false, kZeroToZero, std::asin(x),                        T(1) / std::sqrt(T(1) - v * v))
MXTRAIN_UNARY(Arccos,     "arccos",       kInput,    false, kYes,        std::acos(x),                        T(-1) / std::sqrt(T(1) - v * v))
MXTRAIN_UNARY(Arctan,     "arctan",       kInput,    false, kZeroToZero, std::atan(x),                        T(1) / (T(1) + v * v))
MXTRAIN_UNARY(Sinh,       "sinh",         kInput,    false, kZeroToZero, std::sinh(x),                        std::cosh(v))
MXTRAIN_UNARY(Cosh,       "cosh",         kInput,    false, kYes,        std::cosh(x),                        std::sinh(v))
MXTRAIN_UNARY(Tanh,       "tanh",         kOutput,   false, kZeroToZero, vector_math::Tanh(x),                T(1) - v * v)
MXTRAIN_UNARY(Arcsinh,    "arcsinh",      kInput,    false, kZeroToZero, std::asinh(x),                       T(1) / std::sqrt(v * v + T(1)))
MXTRAIN_UNARY(Arccosh,    "arccosh",      kInput,    false, kYes,        std::acosh(x),                       T(1) / std::sqrt(v * v - T(1)))
MXTRAIN_UNARY(Arctanh,    "arctanh",      kInput,    false, kZeroToZero, std::atanh(x),                       T(1) / (T(1) - v * v))
MXTRAIN_UNARY(Degrees,    "degrees",      kConstant, false, kZeroToZero, x * T(57.29577951308232),            57.29577951308232)
MXTRAIN_UNARY(Radians,    "radians",      kConstant, false, kZeroToZero, x * T(0.017453292519943295),         0.017453292519943295)
MXTRAIN_UNARY(Gamma,      "gamma",        kInput,    false, kYes,        std::tgamma(x),                      std::tgamma(v) * Digamma(v))
MXTRAIN_UNARY(Gammaln,    "gammaln",      kInput,    false, kYes,        std::lgamma(x),                      Digamma(v))
MXTRAIN_UNARY(DigammaOp,  "digamma",      kInput,    false, kYes,        Digamma(x),                          Trigamma(v))
MXTRAIN_UNARY(Erf,        "erf",          kInput,    false, kZeroToZero, vector_math::Erf(x),                 T(1.1283791670955126) * vector_math::Exp(-v * v))
MXTRAIN_UNARY(ErfInvOp,   "erfinv",       kOutput,   false, kZeroToZero, ErfInv(x),                           T(0.886226925452758) * std::exp(v * v))
MXTRAIN_UNARY(Relu,       "relu",         kOutput,   true,  kZeroToZero, x < T(0) ? T(0) : x,                 v > T(0) ? 1 : 0)
MXTRAIN_UNARY(Sigmoid,    "sigmoid",      kOutput,   false, kYes,        vector_math::Sigmoid(x),             v * (T(1) - v))
MXTRAIN_UNARY(Softsign,   "softsign",     kInput,    false, kZeroToZero, x / (T(1) + std::abs(x)),            T(1) / ((T(1) + std::abs(v)) * (T(1) + std::abs(v))))
MXTRAIN_UNARY(Negative,   "negative",     kConstant, true,  kZeroToZero, T(0) - x,                                  -1)
MXTRAIN_UNARY(LogicalNot, "logical_not",  kConstant, true,  kYes,        x == T(0) ? 1 : 0,                   0)
MXTRAIN_UNARY(ZerosLike,  "zeros_like",   kConstant, true,  kZeroToZero, 0,                                   0)
MXTRAIN_UNARY(OnesLike,   "ones_like",    kConstant, true,  kYes,        1,                                   0)
// clang-format on
#undef MXTRAIN_UNARY

// v(Functor{}) for every function.
template <typename V>
void ForEachUnary(V&& v) {
  v(Copy{}), v(Abs{}), v(SignOp{}), v(RoundOp{}), v(RintOp{}), v(Ceil{}), v(FloorOp{}), v(Trunc{}),
      v(Fix{}), v(Square{}), v(Sqrt{});
  v(Rsqrt{}), v(Cbrt{}), v(Rcbrt{}), v(Reciprocal{}), v(Exp{}), v(Expm1{}), v(Log{}), v(Log10{}),
      v(Log2{}), v(Log1p{}), v(Sin{});
  v(Cos{}), v(Tan{}), v(Arcsin{}), v(Arccos{}), v(Arctan{}), v(Sinh{}), v(Cosh{}), v(Tanh{}),
      v(Arcsinh{}), v(Arccosh{}), v(Arctanh{});
  v(Degrees{}), v(Radians{}), v(Gamma{}), v(Gammaln{}), v(DigammaOp{}), v(Erf{}), v(ErfInvOp{}),
      v(Relu{}), v(Sigmoid{}), v(Softsign{}), v(Negative{});
  v(LogicalNot{}), v(ZerosLike{}), v(OnesLike{});
}

}  // namespace mxtrain::elemwise_unary
