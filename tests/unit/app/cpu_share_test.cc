// SPDX-License-Identifier: Apache-2.0
// The processor share of a process, from readings of its threads.
#include "app/commands/cpu_share.h"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"

namespace mxtrain::commands {

TEST_CASE(
    "the share of the processor: other programs lower it, a process's own threads and idle time do "
    "not") {
  const CpuTimes begin{5, 1};
  CHECK(GivenShare(begin, {25, 1}, 10, 2) == 1);  // alone, and busy
  // Every second slice went to others.
  CHECK(GivenShare(begin, {15, 11}, 10, 2) == doctest::Approx(0.5));
  CHECK(GivenShare(begin, {25, 41}, 10, 2) == 1);  // six threads of its own on two processors
  CHECK(GivenShare(begin, {6, 1}, 10, 2) == 1);    // it waits for a disk
  CHECK(GivenShare(begin, begin, 10, 2) == 1);
}

TEST_CASE(
    "times of all threads are added; a thread that is gone, and a system that tells nothing, add "
    "nothing") {
  const test::TempDir dir;
  dir.Write("task/1/schedstat", "2000000000 500000000 7\n");
  dir.Write("task/2/schedstat", "1000000000 0 1\n");
  dir.Write("task/3/other", "");
  const CpuTimes times = ReadCpuTimes(dir.path("task"));
  CHECK(times.ran == 3);
  CHECK(times.queued == 0.5);
  CHECK(ReadCpuTimes(dir.path("nowhere")).ran == 0);
}

}  // namespace mxtrain::commands
