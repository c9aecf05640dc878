// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementary functions of a float without branches, tables or calls, so that compilers can
// vectorize loops over them. Their errors, with and without fused multiply-add, are stated in the
// test beside this file. NaN stays NaN. Results overflow and underflow where the exact ones do, to
// infinity and to zero (results of exp below the least normal number are zero). The double versions
// have the errors of the C library.
//
// Coefficients without a source are minimax: of the relative error of the result over the range
// that is stated, by the exchange algorithm (Remez) in 30 digits.
#include <bit>
#include <cmath>
#include <cstdint>

#include "mxtrain/base/macros.h"

namespace mxtrain::vector_math {

MXTRAIN_HD inline double Exp(double x) {
  return std::exp(x);
}
MXTRAIN_HD inline double Tanh(double x) {
  return std::tanh(x);
}
MXTRAIN_HD inline double Log(double x) {
  return std::log(x);
}
MXTRAIN_HD inline double Log1p(double x) {
  return std::log1p(x);
}
MXTRAIN_HD inline double Erf(double x) {
  return std::erf(x);
}
MXTRAIN_HD inline double Pow(double x, double y) {
  return std::pow(x, y);
}

namespace detail {

// e^x = 2^n e^r, n the integer nearest to x / log 2, |r| <= log(2) / 2. e^r by its Taylor series up
// to r^7, whose remainder is below 6e-9 of the sum. For x whose e^x is a normal number; anything
// for others.
[[gnu::always_inline]] MXTRAIN_HD inline float ExpInside(float x) {
  constexpr float kLog2E = 1.44269504f, kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
  // 1.5 * 2^23: adding it rounds to an integer, in the low bits.
  constexpr float kRounder = 12582912.0f;
  const float shifted = x * kLog2E + kRounder, n = shifted - kRounder;
  const float r = (x - n * kLog2High) - n * kLog2Low;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * (r * r) + r + 1.0f;
  // times 2^n: n is added to the exponent. What shifting leaves of the other bits is 0.
  return std::bit_cast<float>(std::bit_cast<uint32_t>(sum) +
                              (std::bit_cast<uint32_t>(shifted) << 23));
}

}  // namespace detail

// Error at most 1.1 units in the last place.
[[gnu::always_inline]] MXTRAIN_HD inline float Exp(float x) {
  constexpr float kLeast = -87.33654f, kMost = 88.72283f;
  const float inside = detail::ExpInside(x);
  const float bounded = x < kLeast ? 0.0f : x > kMost ? HUGE_VALF : inside;
  return x != x ? x : bounded;
}

// (e^2x - 1) / (e^2x + 1); near zero, where that loses digits, an odd polynomial (the Taylor series
// would need more terms): minimax coefficients on |x| <= 0.625 from Moshier's Cephes, tanhf. Error
// at most 3 units in the last place.
[[gnu::always_inline]] MXTRAIN_HD inline float Tanh(float x) {
  const float size = x < 0 ? -x : x, square = x * x;
  float sum = -5.70498872745e-3f;
  sum = sum * square + 2.06390887954e-2f;
  sum = sum * square - 5.37397155531e-2f;
  sum = sum * square + 1.33314422036e-1f;
  sum = sum * square - 3.33332819422e-1f;
  const float near = sum * square * x + x;
  const float far = 1.0f - 2.0f / (Exp(2.0f * size) + 1.0f);
  return size < 0.625f ? near : x < 0 ? -far : far;
}

template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline T Sigmoid(T x) {
  return T(1) / (T(1) + Exp(-x));
}

namespace detail {

// x = m 2^n with 1/sqrt(2) <= m < sqrt(2), for finite x > 0.
struct Parts {
  float m, n;
};
[[gnu::always_inline]] MXTRAIN_HD inline Parts PartsOf(float x) {
  constexpr uint32_t kRootOfHalf = 0x3f3504f3;  // the bits of 1/sqrt(2)
  const bool tiny = x < 1.17549435e-38f;        // subnormal
  const uint32_t bits = std::bit_cast<uint32_t>(tiny ? x * 8388608.0f : x);
  const int32_t power = static_cast<int32_t>(bits - kRootOfHalf) >> 23;
  return {std::bit_cast<float>(bits - (static_cast<uint32_t>(power) << 23)),
          static_cast<float>(power) - (tiny ? 23.0f : 0.0f)};
}

// log(x) + low for a small `low`, for finite x > 0. For f = m - 1:
// log(1 + f) = f - f^2 / 2 + f^3 P(f).
[[gnu::always_inline]] MXTRAIN_HD inline float LogPlus(float x, float low) {
  constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;  // n * kLog2High is exact
  const auto [m, n] = PartsOf(x);
  const float f = m - 1.0f, square = f * f;
  float sum = 0.0710520667f;
  sum = sum * f - 0.119621096f;
  sum = sum * f + 0.118863881f;
  sum = sum * f - 0.123589722f;
  sum = sum * f + 0.142134454f;
  sum = sum * f - 0.166703490f;
  sum = sum * f + 0.200025112f;
  sum = sum * f - 0.249999736f;
  sum = sum * f + 0.333333065f;
  // Small terms first.
  const float rest = sum * f * square + low + n * kLog2Low - 0.5f * square;
  return f + rest + n * kLog2High;
}

}  // namespace detail

// Error at most 1 unit in the last place, for subnormal arguments too. -infinity at 0, NaN below.
[[gnu::always_inline]] MXTRAIN_HD inline float Log(float x) {
  const float value = detail::LogPlus(x, 0.0f);
  const float outside = x == 0 ? -HUGE_VALF : x > 0 ? x : std::bit_cast<float>(0x7fc00000);
  return x > 0 && x < HUGE_VALF ? value : x != x ? x : outside;
}

// log(1 + x) = log(u) + c / u, where u is 1 + x rounded and c is what rounding took away. Error at
// most 1 unit in the last place.
[[gnu::always_inline]] MXTRAIN_HD inline float Log1p(float x) {
  const float u = 1.0f + x, part = u - 1.0f, lost = (1.0f - (u - part)) + (x - part);
  const float value = detail::LogPlus(u, lost / u);
  const float outside = x == -1.0f ? -HUGE_VALF : x > 0 ? x : std::bit_cast<float>(0x7fc00000);
  return x > -1.0f && x < HUGE_VALF ? value : x != x ? x : outside;
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|). Error at most 2 units in the last place.
template <typename T>
[[gnu::always_inline]] MXTRAIN_HD inline T Softplus(T x) {
  return (x < 0 ? T(0) : x) + Log1p(Exp(x < 0 ? x : -x));
}

// x + x P(x^2) for |x| < 0.92; 1 - e^Q(|x|) with Q approximating log(erfc) on 0.92 .. 4, where erf
// becomes 1 in float. Error at most 1.5 units in the last place.
[[gnu::always_inline]] MXTRAIN_HD inline float Erf(float x) {
  const float size = x < 0 ? -x : x, square = x * x, inside = size > 4.0f ? 4.0f : size;
  float sum = 8.31677660e-5f;
  sum = sum * square - 8.13001310e-4f;
  sum = sum * square + 5.19990672e-3f;
  sum = sum * square - 2.68589415e-2f;
  sum = sum * square + 1.12836872e-1f;
  sum = sum * square - 3.76126332e-1f;
  sum = sum * square + 1.28379167e-1f;
  const float near = sum * x + x;
  float tail = 1.95937231e-4f;
  tail = tail * inside - 3.04321737e-3f;
  tail = tail * inside + 2.22269204e-2f;
  tail = tail * inside - 1.03931597e-1f;
  tail = tail * inside - 6.37182247e-1f;
  tail = tail * inside - 1.12767563f;
  tail = tail * inside - 1.95675469e-4f;
  const float far = 1.0f - detail::ExpInside(tail);
  return size >= 0.92f ? (x < 0 ? -far : far) : near;  // NaN: near
}

// |x|^y = 2^(y log2 |x|) in double, where the errors of both functions are below 2e-9. Error at
// most 0.6 units in the last place, of subnormal results too. Zeros, infinities, NaN and negative
// x are those of std::pow. log2(m) for 1/sqrt(2) <= m < sqrt(2) is an odd polynomial of
// s = (m - 1) / (m + 1). All else is done in floats, of which a vector holds twice as many.
[[gnu::always_inline]] MXTRAIN_HD inline float Pow(float x, float y) {
  constexpr uint32_t kSign = 0x80000000, kNaN = 0x7fc00000;
  const uint32_t given = std::bit_cast<uint32_t>(x);
  const float base = std::bit_cast<float>(given & ~kSign);
  const detail::Parts parts = detail::PartsOf(base);
  const double m = static_cast<double>(parts.m), s = (m - 1) / (m + 1), square = s * s;
  double sum = 0.340738355717;
  sum = sum * square + 0.411672217641;
  sum = sum * square + 0.57708359448;
  sum = sum * square + 0.961796673284;
  sum = sum * square + 2.88539008179;
  const double product = static_cast<double>(y) * (sum * s + static_cast<double>(parts.n));

  constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52: rounds as 1.5 * 2^23 does in Exp
  const double inside = product < -160 ? -160.0 : product > 160 ? 160.0 : product;
  const double shifted = inside + kRounder, r = inside - (shifted - kRounder);
  double two_to_r = 1.55946757187e-4;
  two_to_r = two_to_r * r + 1.3406643857e-3;
  two_to_r = two_to_r * r + 9.61769297977e-3;
  two_to_r = two_to_r * r + 5.55031055117e-2;
  two_to_r = two_to_r * r + 2.40226527829e-1;
  two_to_r = two_to_r * r + 6.93147214968e-1;
  two_to_r = two_to_r * r + 1.0;
  const auto size = static_cast<float>(
      two_to_r * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52));

  constexpr float kAllEven = 16777216.0f;  // 2^24: from here on all floats are even integers
  const float length = y < 0 ? -y : y;
  const auto whole = static_cast<int32_t>(length < kAllEven ? length : 0.0f);
  const bool integer = length >= kAllEven || static_cast<float>(whole) == length;
  const uint32_t sign = integer ? static_cast<uint32_t>(whole) << 31 & given : 0;
  const float limit = (base == 0 ? -y : y) > 0 ? HUGE_VALF : 0.0f;
  const float value = base == 0 || base == HUGE_VALF ? limit : base == 1 ? 1.0f : size;
  const bool undefined = x < 0 && base < HUGE_VALF && !integer;
  const float defined =
      std::bit_cast<float>(undefined ? kNaN : std::bit_cast<uint32_t>(value) | sign);
  return x == 1 || y == 0 ? 1.0f : x != x || y != y ? x + y : defined;
}

}  // namespace mxtrain::vector_math
