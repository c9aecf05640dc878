// SPDX-License-Identifier: Apache-2.0
#include "app/session/compute_modes.h"

#include <doctest/doctest.h>

#include "tests/support/fake_gpu.h"

namespace mxtrain::session {
namespace {

TEST_CASE("fast math rounds float32 factors on a GPU that has units for it, exact math nowhere") {
  const auto runtime = test::NewSmallGpuRuntime(1 << 20);
  CHECK(MathOn(Math::kFast, *runtime, Context::gpu(1)) == Math::kTf32);
  CHECK(MathOn(Math::kTf32, *runtime, Context::gpu(1)) == Math::kTf32);
  CHECK(MathOn(Math::kExact, *runtime, Context::gpu(1)) == Math::kExact);
  for (const Math math : {Math::kFast, Math::kTf32, Math::kExact})
    CHECK(MathOn(math, *runtime, Context::cpu()) == math);
}

}  // namespace
}  // namespace mxtrain::session
