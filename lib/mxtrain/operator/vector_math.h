// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementary functions of a float without branches, tables or calls, so that compilers can
// vectorize loops over them. Their errors are stated in the test beside this file. NaN stays NaN.
// Results overflow and underflow where the exact ones do, to infinity and to zero (results below
// the least normal number are zero). The double versions have the errors of the C library.
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

// e^x = 2^n e^r, n the integer nearest to x / log 2, |r| <= log(2) / 2. e^r by its Taylor series up
// to r^7, whose remainder is below 6e-9 of the sum. Error at most 1.1 units in the last place.
[[gnu::always_inline]] MXTRAIN_HD inline float Exp(float x) {
  constexpr float kLog2E = 1.44269504f, kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
  // 1.5 * 2^23: adding it rounds to an integer, in the low bits.
  constexpr float kRounder = 12582912.0f;
  constexpr float kLeast = -87.33654f, kMost = 88.72283f;
  const float inside = x < kLeast ? kLeast : x > kMost ? kMost : x;
  const float shifted = inside * kLog2E + kRounder, n = shifted - kRounder;
  const float r = (inside - n * kLog2High) - n * kLog2Low;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * (r * r) + r + 1.0f;
  // 2^n as two factors, since n may be 128.
  const int32_t power = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRounder),
                half = power >> 1;
  const float scaled = sum * std::bit_cast<float>((half + 127) << 23) *
                       std::bit_cast<float>((power - half + 127) << 23);
  const float bounded = x < kLeast ? 0.0f : x > kMost ? HUGE_VALF : scaled;
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

}  // namespace mxtrain::vector_math
