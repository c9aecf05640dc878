// SPDX-License-Identifier: Apache-2.0
// Boundaries against all pairs of their pixels.
#include "mxtrain/metric/boundary_f.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

namespace mxtrain {
namespace {

using Pixels = std::vector<std::pair<int64_t, int64_t>>;

// The boundary of one class by its definition; pixels that are ignored are of no class.
Pixels BoundaryPixels(const std::vector<int32_t>& map, const std::vector<int32_t>& truth,
                      int64_t height, int64_t width, int32_t of) {
  const auto at = [&](int64_t y, int64_t x) {
    const bool inside = y >= 0 && x >= 0 && y < height && x < width;
    const auto k = static_cast<size_t>(y * width + x);
    return !inside || truth[k] < 0 ? -1 : map[k];
  };
  Pixels pixels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      if (at(y, x) != of) continue;
      bool beside = false;
      for (const int32_t other : {at(y - 1, x), at(y + 1, x), at(y, x - 1), at(y, x + 1)})
        beside = beside || (other >= 0 && other != of);
      if (beside) pixels.emplace_back(y, x);
    }
  }
  return pixels;
}

int64_t CountNear(const Pixels& of, const Pixels& to, double tolerance) {
  int64_t count = 0;
  for (const auto& [y, x] : of) {
    bool near = false;
    for (const auto& [v, u] : to)
      near = near || std::hypot(double(y - v), double(x - u)) <= tolerance;
    count += near;
  }
  return count;
}

}  // namespace

TEST_CASE("boundaries are matched as all pairs of their pixels say") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    const auto height = static_cast<int64_t>(1 + random() % 30),
               width = static_cast<int64_t>(1 + random() % 30);
    const auto classes = static_cast<int32_t>(1 + random() % 4);
    const double tolerance = trial % 3 == 0 ? 1 : 1 + 0.1 * static_cast<double>(random() % 40);
    std::vector<int32_t> truth, guesses;
    // Blocks, so that classes have insides; some pixels are ignored.
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        truth.push_back(random() % 20 == 0 ? -1 : int32_t((y / 7 + x / 9) % classes));
        guesses.push_back(random() % 15 == 0 ? int32_t(random() % uint32_t(classes))
                                             : int32_t(((y + 1) / 7 + (x + 2) / 9) % classes));
      }
    }
    const auto matches = MatchBoundaries(truth, guesses, height, width, classes, tolerance);
    REQUIRE(std::ssize(matches) == classes);
    for (int32_t c = 0; c < classes; ++c) {
      const Pixels labelled = BoundaryPixels(truth, truth, height, width, c),
                   guessed = BoundaryPixels(guesses, truth, height, width, c);
      const BoundaryMatch& match = matches[static_cast<size_t>(c)];
      CHECK(match.labelled == std::ssize(labelled));
      CHECK(match.guessed == std::ssize(guessed));
      CHECK(match.labelled_met == CountNear(labelled, guessed, tolerance));
      CHECK(match.guessed_met == CountNear(guessed, labelled, tolerance));
    }
  }
}

TEST_CASE("a boundary that is moved is matched within the tolerance alone") {
  constexpr int64_t kSide = 20;
  const auto halves = [](int64_t at) {
    std::vector<int32_t> map;
    for (int64_t i = 0; i < kSide * kSide; ++i) map.push_back(i % kSide >= at);
    return map;
  };
  const auto f = [&](int64_t moved, double tolerance) {
    return MatchBoundaries(halves(10), halves(10 + moved), kSide, kSide, 2, tolerance)[1].F();
  };
  CHECK(f(0, 1) == 1);
  CHECK(f(2, 2) == 1);
  CHECK(f(3, 2) == 0);
  // A class that fills the image has no boundary; one that is not found has none in the prediction.
  const std::vector<int32_t> full(kSide * kSide, 0);
  CHECK(std::isnan(MatchBoundaries(full, halves(10), kSide, kSide, 2, 1)[0].F()));
  CHECK(MatchBoundaries(halves(10), full, kSide, kSide, 2, 1)[1].F() == 0);
  CHECK(BoundaryTolerance(300, 400) == doctest::Approx(3.75));
  CHECK(BoundaryTolerance(3, 4) == 1);
  // Half of a boundary is predicted: precision 1, recall a half.
  const BoundaryMatch half{.labelled = 10, .guessed = 5, .labelled_met = 5, .guessed_met = 5};
  CHECK(half.F() == doctest::Approx(2.0 / 3));
}

}  // namespace mxtrain
