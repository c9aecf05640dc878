// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/optimizer/patience.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

TEST_CASE("patience ends after that many values without an improvement above min_delta") {
  Patience patience(2, 0.125);
  CHECK_FALSE(patience.Exhausted(1.0, true));
  CHECK_FALSE(patience.Exhausted(1.0625, true));  // too little
  CHECK_FALSE(patience.Exhausted(1.25, true));
  CHECK(patience.waited() == 0);
  CHECK_FALSE(patience.Exhausted(std::nan(""), true));
  CHECK(patience.Exhausted(1.375, true));  // by exactly min_delta
  CHECK(patience.Exhausted(0.0, true));
  patience.Restart();
  CHECK_FALSE(patience.Exhausted(1.0, true));
}

// Few validation examples tie all the time: four epochs of the same accuracy ended a run whose loss
// still fell by a third.
TEST_CASE("an equal value with a lower loss is an improvement") {
  Patience patience(2, 0.125), fresh(2, 0.125);
  CHECK_FALSE(patience.Exhausted(0.75, true, 0.5));
  CHECK_FALSE(patience.Exhausted(0.75, true, 0.5));  // not lower
  CHECK(patience.waited() == 1);
  CHECK_FALSE(patience.Exhausted(0.75, true, 0.25));
  CHECK(patience.waited() == 0);
  CHECK_FALSE(patience.Exhausted(0.625, true, 0.125));  // another value
  CHECK(patience.waited() == 1);
  fresh.RestoreState(patience.SaveState());
  CHECK_FALSE(fresh.Exhausted(0.75, true, 0.2));
  fresh.RestoreState("1 0x1.8p-1");  // of a version without losses: equal is no improvement
  CHECK(fresh.Exhausted(0.75, true, 0.125));
  Patience without(1, 0);
  CHECK_FALSE(without.Exhausted(0.75, true, std::nan("")));
  CHECK(without.Exhausted(0.75, true, 0.1));
}

TEST_CASE("less is better for a loss") {
  Patience patience(1, 0);
  CHECK_FALSE(patience.Exhausted(1.0, false));
  CHECK_FALSE(patience.Exhausted(0.5, false));
  CHECK(patience.Exhausted(0.5, false));
}

TEST_CASE("a restored count continues as the saved one") {
  Patience first(3, 0), fresh(3, 0);
  CHECK(first.SaveState() == "0");
  for (double value : {0.1, 1.0 / 3, 0.2}) first.Exhausted(value, true);
  fresh.RestoreState(first.SaveState());
  CHECK(fresh.SaveState() == first.SaveState());
  for (double value : {1.0 / 3, 0.3})
    CHECK(fresh.Exhausted(value, true) == first.Exhausted(value, true));
  CHECK(fresh.waited() == 3);
  CHECK_THROWS_AS(fresh.RestoreState("best"), Error);
}

}  // namespace
}  // namespace mxtrain
