// SPDX-License-Identifier: Apache-2.0
#include "app/commands/train_report.h"

#include <doctest/doctest.h>

namespace mxtrain::commands {

TEST_CASE("what limits the speed: a long wait for data is named before other programs") {
  CHECK(LimitOf(0, 1) == SpeedLimit::kComputation);
  CHECK(LimitOf(0.1, 1) == SpeedLimit::kComputationAndData);
  CHECK(LimitOf(0.6, 1) == SpeedLimit::kData);
  // Readers compete with the net for the processors.
  CHECK(LimitOf(0.6, 0.5) == SpeedLimit::kData);
  CHECK(LimitOf(1, 0) == SpeedLimit::kData);
  // Without a long wait only other programs explain the lost processor time.
  CHECK(LimitOf(0, 0.5) == SpeedLimit::kOtherPrograms);
  CHECK(LimitOf(0.1, 0.5) == SpeedLimit::kOtherPrograms);
}

}  // namespace mxtrain::commands
