// SPDX-License-Identifier: Apache-2.0
// The data of a run's plots.
#include "app/report/run_plots.h"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"

namespace mxtrain::report {

TEST_CASE(
    "learning rates of a run: several per epoch, of its last repetition, only from complete "
    "lines") {
  const test::TempDir dir;
  dir.Write("events.jsonl",
            R"({"event":"start","schema":1}
{"event":"epoch","epoch":1,"lr":0.3,"rates":[[0,0.1],[0.5,0.2],[0.75,0.3]]}
{"event":"epoch","epoch":2,"lr":0.9,"rates":[[1,0.9]]}
{"event":"epoch","epoch":2,"lr":0.5,"rates":[[1,0.4],[1.5,0.5]]}
{"event":"epoch","epoch":3,"rates":[[2,)");
  const std::vector<plot::Point> points = ReadRates(dir.path("events.jsonl"));
  REQUIRE(points.size() == 5);
  CHECK(points[1].x == 0.5);
  CHECK(points[1].y == 0.2);
  CHECK(points[3].x == 1);
  CHECK(points[3].y == 0.4);
  CHECK(points[4].y == 0.5);
  CHECK(ReadRates(dir.path("nowhere")).empty());
}

}  // namespace mxtrain::report
