// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/run_clock.h"

#include <doctest/doctest.h>

namespace mxtrain {
namespace {

// A run of so many batches of 2, as the training loop times it; each waits 1 s for data.
RunClock RunOf(int64_t batches) {
  RunClock clock;
  double waited = 0;
  clock.Resume(waited);
  for (int64_t i = 0; i < batches; ++i) {
    ++waited;
    if (clock.AddBatch(2)) clock.Pause(waited);
  }
  clock.Pause(waited);
  return clock;
}

TEST_CASE("the pace of a brief run is that of all its batches") {
  for (const int64_t batches : {1, 19, 20, 21, 40, 49}) {
    CAPTURE(batches);
    const RunClock clock = RunOf(batches);
    CHECK(clock.is_brief());
    CHECK(clock.PaceOfRun().batches == batches);
    CHECK(clock.PaceOfRun().images == 2 * batches);
    CHECK(clock.PaceOfRun().waited == doctest::Approx(static_cast<double>(batches)));
  }
}

TEST_CASE("a longer run leaves its warm-up out") {
  for (const int64_t batches : {50, 51, 200}) {
    CAPTURE(batches);
    const RunClock clock = RunOf(batches);
    CHECK_FALSE(clock.is_brief());
    CHECK(clock.PaceOfRun().batches == batches - 20);
    CHECK(clock.PaceOfRun().images == 2 * (batches - 20));
    CHECK(clock.PaceOfRun().waited == doctest::Approx(static_cast<double>(batches - 20)));
    CHECK(clock.batches() == batches);
    CHECK(clock.epoch.batches == batches);
  }
}

TEST_CASE("a pace of no time has no speed") {
  CHECK(Pace().ImagesPerSecond() == 0);
  CHECK(Pace().WaitShare() == 0);
  CHECK(Pace{2, 0.5, 10, 5}.ImagesPerSecond() == 5);
  CHECK(Pace{2, 0.5, 10, 5}.WaitShare() == 0.25);
  CHECK(Pace{2, 3, 10, 5}.WaitShare() == 1);  // of clocks that are read at different times
}

}  // namespace
}  // namespace mxtrain
