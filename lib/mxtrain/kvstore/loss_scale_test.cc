// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>

#include "mxtrain/kvstore/loss_scale.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

TEST_CASE("the first scale is a power of two, smaller if losses give sums over a batch") {
  CHECK(LossScale::First(1) == 65536);
  CHECK(LossScale::First(1.0 / 128) == 512);
  CHECK(LossScale::First(1.0 / 100) == 512);
  CHECK(LossScale::First(1e-9) == 1);
  CHECK(LossScale::First(1e9) == 1 << 24);
}

TEST_CASE("workers of one device share its scale, which a step changes and a checkpoint sets") {
  const auto runtime = NewRuntime();
  const auto array = [&](const TShape& shape, DType type = DType::kFloat32) {
    return NDArray(*runtime, shape, type);
  };
  const std::vector<NDArray> workers = {array({1}), array({1}), array({1})};
  LossScale scale(*runtime, {Context::cpu()}, workers, {64, 5, 2, 0});
  for (const NDArray& worker : workers) CHECK(worker.ToVector() == std::vector<float>{64});

  const NDArray sums = array({2}, DType::kFloat64), scalars = array({1, 4});
  const auto update = [&](double sum) {
    SetValues(sums, {1, sum});
    SetValues(scalars, {0.5, 0.25, 8, 1});
    scale.Update(0, sums, scalars);
  };
  update(3);
  CHECK(scalars.ToVector() == std::vector<float>{0.5, 0.25, 0.125, 1});
  CHECK(scale.Read() == LossScaleState{64, 6, 2, 0});
  update(std::numeric_limits<double>::infinity());
  CHECK(scalars.ToVector() == std::vector<float>{0.5, 0.25, 0, 1});
  CHECK(scale.Read() == LossScaleState{32, 0, 3, 0});
  for (const NDArray& worker : workers) CHECK(worker.ToVector() == std::vector<float>{32});
  scale.Write({4, 1, 7, 0});
  CHECK(scale.Read() == LossScaleState{4, 1, 7, 0});
  for (const NDArray& worker : workers) CHECK(worker.ToVector() == std::vector<float>{4});
}

}  // namespace
}  // namespace mxtrain::test
