// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/train/internal/lone_values.h"
#include "tests/support/small_nets.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

// A batch norm at net.yaml:7 between the data and a loss.
Symbol Net(const Kwargs& of_norm = {}) {
  const Symbol norm = Symbol::Create(TestRegistry(), "BatchNorm", "norm", of_norm,
                                     std::vector{Symbol::Variable("data")}, {}, {}, "net.yaml:7");
  return Symbol::Create(TestRegistry(), "MakeLoss", "loss", {}, std::vector{norm});
}

// What is said of a batch of this shape; "" if it is trained.
std::string SaidOf(const TShape& batch, const TrainOptions& options, const Kwargs& of_norm = {}) {
  DataDesc data;
  data.name = "data";
  data.shape = batch;
  try {
    RequireSeveralValues(options, Net(of_norm), std::vector{data});
    return "";
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::kConfig);
    return e.what();
  }
}

TEST_CASE("batch norm over one value per channel is refused, with the layer and its shape") {
  const TrainOptions one;
  CHECK(
      SaidOf({1, 8}, one) ==
      "BatchNorm 'norm' (net.yaml:7) of [1, 8]: batch normalization over one value per channel "
      "gives beta for every input, so what is before it learns nothing; give a batch two examples "
      "or more, or set use_global_stats: true");
  CHECK(SaidOf({1, 8, 1, 1}, one) != "");
  CHECK(SaidOf({1, 1, 1, 8}, one, {{"axis", "3"}}) != "");
  CHECK(SaidOf({1, 1, 1, 8}, one, {{"axis", "-1"}}) != "");
  CHECK(SaidOf({1, 8, 1, 2}, one) == "");
  CHECK(SaidOf({2, 8}, one) == "");
  CHECK(SaidOf({1, 1, 1, 8}, one) == "");
  CHECK(SaidOf({1, 8}, one, {{"use_global_stats", "true"}}) == "");
  TrainOptions parts;
  parts.grad_accum = 4;
  CHECK(SaidOf({1, 8}, parts).find("give each of the batches that grad_accum sums two") !=
        std::string::npos);
  CHECK(SaidOf({2, 8}, parts) == "");
}

TEST_CASE("each worker's part of a batch counts, unless the statistics are of all parts") {
  TrainOptions workers;
  workers.workers.assign(2, Context::cpu());
  CHECK(SaidOf({2, 8}, workers).find(" of [1, 8]: ") != std::string::npos);
  CHECK(SaidOf({2, 8}, workers).find("sync_batch_norm: true") != std::string::npos);
  CHECK(SaidOf({4, 8}, workers) == "");
  workers.sync_batch_norm = true;
  CHECK(SaidOf({2, 8}, workers) == "");
  RunRanks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    TrainOptions rank;
    rank.group = group;
    CHECK(SaidOf({1, 8}, rank) != "");
    rank.sync_batch_norm = true;
    CHECK(SaidOf({1, 8}, rank) == "");
  });
}

}  // namespace
}  // namespace mxtrain::test
