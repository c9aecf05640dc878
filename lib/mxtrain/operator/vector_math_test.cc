// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/vector_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

namespace mxtrain {
namespace {

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

TEST_CASE("beyond the range of floats: infinity, zero, NaN") {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
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
}

}  // namespace
}  // namespace mxtrain
