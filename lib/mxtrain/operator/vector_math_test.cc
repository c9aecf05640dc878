// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/vector_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace mxtrain {
namespace {

const float kInfinity = std::numeric_limits<float>::infinity(),
            kNaN = std::numeric_limits<float>::quiet_NaN();

// Distance from the exact value in float units in the last place.
double Units(float got, double truth) {
  const float rounded = static_cast<float>(truth);
  const double unit =
      std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity()) - std::abs(rounded);
  return std::abs(static_cast<double>(got) - truth) / unit;
}

// Over every 97th float of a range.
template <typename F, typename G>
double WorstUnits(float begin, float end, F f, G truth) {
  double worst = 0;
  for (double x = begin; x < end;) {
    const auto at = static_cast<float>(x);
    worst = std::max(worst, Units(f(at), truth(static_cast<double>(at))));
    x += std::max(97 * (std::nextafter(std::abs(at), 1e30f) - std::abs(at)), 1e-6f);
  }
  return worst;
}

// Over every `step`th positive float from `begin` to `end`, whatever its size; and the same negated
// if `both`.
template <typename F, typename G>
double WorstOfEverySize(float begin, float end, uint32_t step, bool both, F f, G truth) {
  double worst = 0;
  for (uint32_t bits = std::bit_cast<uint32_t>(begin); bits <= std::bit_cast<uint32_t>(end);
       bits += step) {
    const float at = std::bit_cast<float>(bits);
    worst = std::max(worst, Units(f(at), truth(static_cast<double>(at))));
    if (both) worst = std::max(worst, Units(f(-at), truth(-static_cast<double>(at))));
  }
  return worst;
}

TEST_CASE("exp and related functions stay within their error bounds") {
  CHECK(WorstUnits(
            -87.3f, 88.7f, [](float x) { return vector_math::Exp(x); },
            [](double x) { return std::exp(x); }) < 1.1);
  CHECK(WorstUnits(
            -20, 20, [](float x) { return vector_math::Tanh(x); },
            [](double x) { return std::tanh(x); }) < 3);
  CHECK(WorstUnits(
            -80, 80, [](float x) { return vector_math::Sigmoid(x); },
            [](double x) { return 1 / (1 + std::exp(-x)); }) < 3);
}

constexpr float kLeastFloat = 1e-45f, kMostFloat = 3.4e38f;

TEST_CASE("log, log1p and softplus stay within their error bounds") {
  const auto log = [](float x) { return vector_math::Log(x); };
  const auto log1p = [](float x) { return vector_math::Log1p(x); };
  const auto softplus = [](float x) { return vector_math::Softplus(x); };
  const auto exact_log = [](double x) { return std::log(x); };
  const auto exact_log1p = [](double x) { return std::log1p(x); };
  const auto exact_softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  CHECK(WorstOfEverySize(kLeastFloat, kMostFloat, 7919, false, log, exact_log) < 1);
  CHECK(WorstOfEverySize(0.5f, 2.0f, 97, false, log, exact_log) < 1);
  CHECK(WorstOfEverySize(1e-30f, kMostFloat, 7919, false, log1p, exact_log1p) < 1);
  CHECK(WorstOfEverySize(1e-30f, 0.99999994f, 4999, true, log1p, exact_log1p) < 1);
  CHECK(WorstOfEverySize(1e-30f, 87.0f, 4999, true, softplus, exact_softplus) < 2);
  CHECK(WorstOfEverySize(0.01f, 20.0f, 997, true, softplus, exact_softplus) < 2);
}

TEST_CASE("erf stays within its error bound") {
  const auto erf = [](float x) { return vector_math::Erf(x); };
  const auto exact = [](double x) { return std::erf(x); };
  CHECK(WorstOfEverySize(1e-30f, 100.0f, 7919, true, erf, exact) < 1.5);
  CHECK(WorstOfEverySize(0.25f, 4.25f, 97, true, erf, exact) < 1.5);
}

TEST_CASE("pow stays within its error bound") {
  for (const float power :
       {-37.25f, -3.0f, -0.5f, 1e-3f, 1.0f / 3, 0.75f, 1.0f, 2.0f, 2.2f, 40.0f}) {
    CAPTURE(power);
    const auto pow = [&](float x) { return vector_math::Pow(x, power); };
    const auto exact = [&](double x) { return std::pow(x, static_cast<double>(power)); };
    // Results from subnormal to the largest.
    const double low = std::pow(power > 0 ? 1e-44 : 3e38, 1 / static_cast<double>(power)),
                 high = std::pow(power > 0 ? 3e38 : 1e-44, 1 / static_cast<double>(power));
    const auto begin = static_cast<float>(std::max(low, 1e-37)),
               end = static_cast<float>(std::min(high, 3e38));
    CHECK(WorstOfEverySize(begin, end, 20011, false, pow, exact) < 0.6);
  }
  for (const float base : {1e-30f, 0.3f, 0.99999994f, 1.0000001f, 1.5f, 7e20f}) {
    CAPTURE(base);
    const auto pow = [&](float y) { return vector_math::Pow(base, y); };
    const auto exact = [&](double y) { return std::pow(static_cast<double>(base), y); };
    const double most = 80 / std::abs(std::log(static_cast<double>(base)));
    CHECK(WorstOfEverySize(1e-20f, static_cast<float>(std::min(most, 1e7)), 20011, true, pow,
                           exact) < 0.6);
  }
}

TEST_CASE("pow treats zeros, infinities, NaN and signs as std::pow does") {
  const float values[] = {0.0f,        -0.0f,        1.0f,       -1.0f, 2.0f,      -2.0f,
                          0.5f,        -0.5f,        3.0f,       -3.0f, kInfinity, -kInfinity,
                          kNaN,        1e-40f,       -1e-40f,    3e38f, -3e38f,    16777216.0f,
                          16777215.0f, -16777215.0f, 8388607.5f, 1e20f, 0.1f,      -0.1f};
  for (const float x : values) {
    for (const float y : values) {
      CAPTURE(x);
      CAPTURE(y);
      const float got = vector_math::Pow(x, y);
      const auto want =
          static_cast<float>(std::pow(static_cast<double>(x), static_cast<double>(y)));
      CHECK(std::isnan(got) == std::isnan(want));
      if (std::isnan(want)) continue;
      CHECK(std::signbit(got) == std::signbit(want));
      if (std::isinf(want) || want == 0) {
        CHECK(got == want);
      } else {
        CHECK(Units(got, static_cast<double>(want)) <= 1);
      }
    }
  }
}

TEST_CASE("double versions are those of the C library") {
  for (const double x : {-0.75, 0.0, 1e-9, 0.5, 3.0}) {
    CAPTURE(x);
    CHECK(vector_math::Log(x + 1) == std::log(x + 1));
    CHECK(vector_math::Log1p(x) == std::log1p(x));
    CHECK(vector_math::Erf(x) == std::erf(x));
    CHECK(vector_math::Pow(x + 1, x) == std::pow(x + 1, x));
    CHECK(vector_math::Softplus(x) == doctest::Approx(std::log(1 + std::exp(x))).epsilon(1e-14));
  }
}

TEST_CASE("beyond the range of floats: infinity, zero, NaN") {
  const float infinity = kInfinity, nan = kNaN;
  CHECK(vector_math::Exp(infinity) == infinity);
  CHECK(vector_math::Exp(89.0f) == infinity);
  CHECK(vector_math::Exp(-infinity) == 0);
  CHECK(vector_math::Exp(-200.0f) == 0);
  CHECK(vector_math::Exp(0.0f) == 1);
  CHECK(std::isnan(vector_math::Exp(nan)));
  CHECK(vector_math::Tanh(infinity) == 1);
  CHECK(vector_math::Tanh(-infinity) == -1);
  CHECK(vector_math::Tanh(0.0f) == 0);
  CHECK(std::isnan(vector_math::Tanh(nan)));
  CHECK(vector_math::Sigmoid(infinity) == 1);
  CHECK(vector_math::Sigmoid(-infinity) == 0);
  CHECK(std::isnan(vector_math::Sigmoid(nan)));
  CHECK(vector_math::Log(0.0f) == -infinity);
  CHECK(vector_math::Log(-0.0f) == -infinity);
  CHECK(vector_math::Log(1.0f) == 0);
  CHECK(vector_math::Log(infinity) == infinity);
  CHECK(std::isnan(vector_math::Log(-1.0f)));
  CHECK(std::isnan(vector_math::Log(-infinity)));
  CHECK(std::isnan(vector_math::Log(nan)));
  CHECK(vector_math::Log1p(-1.0f) == -infinity);
  CHECK(vector_math::Log1p(0.0f) == 0);
  CHECK(vector_math::Log1p(infinity) == infinity);
  CHECK(std::isnan(vector_math::Log1p(-1.5f)));
  CHECK(std::isnan(vector_math::Log1p(nan)));
  CHECK(vector_math::Softplus(infinity) == infinity);
  CHECK(vector_math::Softplus(-infinity) == 0);
  CHECK(std::isnan(vector_math::Softplus(nan)));
  CHECK(vector_math::Erf(infinity) == 1);
  CHECK(vector_math::Erf(-infinity) == -1);
  CHECK(vector_math::Erf(0.0f) == 0);
  CHECK(std::isnan(vector_math::Erf(nan)));
}

}  // namespace
}  // namespace mxtrain
