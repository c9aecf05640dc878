// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/time_left.h"

#include <doctest/doctest.h>

namespace mxtrain {
namespace {

TEST_CASE("the time left counts validation and saves by what they took") {
  TimeLeft left(/*steps_per_epoch=*/100, /*validation=*/0.3);
  CHECK(left.Of(50, 2) == 0);  // nothing is known
  for (int i = 0; i < 10; ++i) left.AddSteps(10, 5);
  CHECK(left.Of(60, 0) == doctest::Approx(30));
  // 30 steps' worth of examples, forward only: 5 s.
  CHECK(left.Of(60, 2) == doctest::Approx(40));
  left.AddEpoch(33);
  CHECK(left.Of(60, 2) == doctest::Approx(96));
  left.AddEpoch(11);
  CHECK(left.Of(0, 1) == doctest::Approx(22));
}

TEST_CASE("a slow moment moves the time left little, a slow machine in the end wholly") {
  TimeLeft left(100, 0);
  for (int i = 0; i < 300; ++i) left.AddSteps(2, 0.2);  // a minute
  const double calm = left.Of(1000, 0);
  CHECK(calm == doctest::Approx(100));
  for (int i = 0; i < 5; ++i) left.AddSteps(1, 0.3);  // three times as slow for 1.5 s
  CHECK(left.Of(1000, 0) < 1.2 * calm);
  for (int i = 0; i < 3000; ++i) left.AddSteps(1, 0.3);
  CHECK(left.Of(1000, 0) == doctest::Approx(300).epsilon(0.05));
}

TEST_CASE("a slow first step is forgotten at once") {
  TimeLeft left(100, 0);
  left.AddSteps(1, 30);
  left.AddSteps(10, 1);
  CHECK(left.Of(100, 0) == doctest::Approx(10));
}

}  // namespace
}  // namespace mxtrain
