// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/best_epochs.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/training_run.h"
#include "tests/support/vectors.h"

namespace mxtrain::test {
namespace {

MetricSet AccuracyOf(const Symbol& net) {
  return MetricSet(net, LossReport(net), {{"accuracy", {}, "", ""}},
                   {{"softmax_label", TShape{4}}});
}

// Of four epochs with the same accuracy of 40 photos the first was kept, whose scores were too low.
TEST_CASE("of epochs with the best accuracy the one of the lowest loss is kept") {
  const MetricSet metrics = AccuracyOf(QuietNet());
  BestEpochs best({"accuracy", "loss"}, metrics);
  const auto add = [&best](int64_t epoch, double accuracy, double loss) {
    return best.Update(epoch, {{"loss", loss}, {"accuracy", accuracy}});
  };
  CHECK(add(1, 0.75, 0.5) == Strings{"best", "best-loss"});
  CHECK(add(2, 0.75, 0.25) == Strings{"best", "best-loss"});
  CHECK(add(3, 0.75, 0.25).empty());
  CHECK(add(4, 0.75, 0.375).empty());
  CHECK(add(5, 0.5, 0.125) == Strings{"best-loss"});
  CHECK(best.first().epoch == 2);
  CHECK(best.first().loss == 0.25);
  CHECK(add(6, 0.75, std::nan("")).empty());
  CHECK(add(7, 0.875, 0.75) == Strings{"best"});
  CHECK(best.first().loss == 0.75);
  CHECK(add(8, 1.0, std::numeric_limits<double>::infinity()).empty());
}

TEST_CASE("the best epoch of an older checkpoint, whose loss is unknown, stays in a tie") {
  const MetricSet metrics = AccuracyOf(QuietNet());
  BestEpochs best({"accuracy"}, metrics);
  best.Restore({{"accuracy", 0.75, 3}});
  CHECK(best.Update(4, {{"loss", 0.1}, {"accuracy", 0.75}}).empty());
  CHECK(best.first().epoch == 3);
  CHECK(best.Update(5, {{"accuracy", 1.0}}) == Strings{"best"});
  CHECK(best.first().loss == std::nullopt);
}

}  // namespace
}  // namespace mxtrain::test
