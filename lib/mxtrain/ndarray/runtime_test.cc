// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/runtime.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/device/cpu/parallel.h"

namespace mxtrain {
namespace {

std::unique_ptr<Runtime> NewRuntime(const std::string& engine, int threads, int cpu_workers) {
  RuntimeOptions options;
  options.engine = engine;
  options.threads = threads;
  options.cpu_workers = cpu_workers;
  return std::make_unique<Runtime>(options, nullptr);
}

TEST_CASE("CPU workers divide the threads") {
  for (const char* engine : {"threaded", "naive"}) {
    for (const auto& [threads, workers, team] : {std::array{5, 1, 5}, {5, 2, 2}, {4, 4, 1}}) {
      CAPTURE(workers);
      const auto runtime = NewRuntime(engine, threads, workers);
      std::atomic<int> seen = 0;
      runtime->engine().PushSync([&](RunContext) { seen = TeamSize(); }, {}, {}, {});
      runtime->engine().WaitForAll();
      CHECK(seen == team);
      CHECK(TeamSize() == team);
      CHECK(runtime->backend(Context::cpu()).threads() == team);
    }
  }
}

TEST_CASE("every CPU worker needs a thread") {
  CHECK_THROWS_WITH_AS(NewRuntime("threaded", 2, 3),
                       "3 CPU workers cannot divide 2 compute threads; use 1 to 2 workers, or more "
                       "threads",
                       Error);
  CHECK_THROWS_WITH(NewRuntime("threaded", 2, 0), doctest::Contains("0 CPU workers"));
  CHECK_THROWS(NewRuntime("threaded", 0, UsableCpuCount() + 1));
}

}  // namespace
}  // namespace mxtrain
