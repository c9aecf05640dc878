// SPDX-License-Identifier: Apache-2.0
#include "app/session/open_runtime.h"

#include <doctest/doctest.h>

namespace mxtrain::session {
namespace {

TEST_CASE("--cpu-workers divides the threads of nets on the CPU only") {
  ComputeOptions flags;
  flags.cpu_workers = 3;
  CHECK(CpuWorkersFor(flags, Context::cpu()) == 3);
  CHECK(CpuWorkersFor(flags, Context::cpu(1)) == 3);
  CHECK(CpuWorkersFor(flags, Context::gpu(0)) == 1);
}

}  // namespace
}  // namespace mxtrain::session
