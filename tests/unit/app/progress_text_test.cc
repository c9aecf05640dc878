// SPDX-License-Identifier: Apache-2.0
#include "app/console/progress_text.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/format.h"

namespace mxtrain::console {
namespace {

EpochEvent EpochOf(int64_t epoch, double loss, double accuracy) {
  EpochEvent e;
  e.epoch = epoch;
  e.epochs = 15;
  e.seconds = 72;
  e.images_per_second = 351.34;
  e.train = {{"loss", loss}, {"accuracy", accuracy}, {"cross_entropy", loss * (1 + 1e-8)}};
  e.val = e.train;
  return e;
}

TEST_CASE("scores have the digits that their examples can tell apart") {
  CHECK(ScoreText(0.42708333, 96) == "0.43");
  CHECK(ScoreText(0.42708333, 960) == "0.427");
  CHECK(ScoreText(0.42708333, 600000) == "0.4271");
  CHECK(ScoreText(1.2345678, 600000) == "1.2346");
  CHECK(ScoreText(12.345678, 600000) == "12.346");
  CHECK(ScoreText(123456.7, 100) == "123457");
  CHECK(ScoreText(0.0042, 50) == "0.0042");  // two digits that are not 0
  CHECK(ScoreText(0.012345, 60000) == "0.012");
  CHECK(ScoreText(-0.5, 500) == "-0.500");
  CHECK(ScoreText(3e-7, 500) == "3.0e-07");
  CHECK(ScoreText(0, 500) == "0");
  CHECK(ScoreText(1, 500) == "1.000");
  CHECK(ScoreText(NAN, 500) == "nan");
}

TEST_CASE("the line of an epoch fits, its values are aligned, and the loss is there once") {
  EpochLines lines(3000, 500);
  EpochEvent e = EpochOf(3, 0.53431, 0.81234);
  e.best = true;
  const std::vector<std::string> one = lines.Of(e), other = lines.Of(EpochOf(12, 10.5, 1));
  REQUIRE(one.size() == 1);
  CHECK(one[0] ==
        "epoch  3/15  train: loss 0.534  accuracy 0.812  val: loss 0.534  accuracy 0.812  1:12    "
        "351/s  best");
  CHECK(one[0].size() == 100);
  REQUIRE(other.size() == 1);
  CHECK(other[0] ==
        "epoch 12/15  train: loss 10.50  accuracy 1.000  val: loss 10.50  accuracy 1.000  1:12    "
        "351/s");
}

TEST_CASE("a cross entropy that is not the loss is there") {
  EpochLines lines(3000, 500);
  EpochEvent e = EpochOf(3, 0.53431, 0.81234);
  e.train[2].second = 0.5;
  e.val.clear();
  CHECK(lines.Of(e).at(0).find("accuracy 0.812  cross_entropy 0.500") != std::string::npos);
}

TEST_CASE("many metrics take several lines of 100 columns, in each epoch") {
  EpochLines lines(3000, 500);
  EpochEvent e = EpochOf(3, 0.53431, 0.81234);
  for (int i = 0; i < 8; ++i) {
    e.train.emplace_back(format("multilabel_f{}", i), 0.25);
    e.val.emplace_back(format("multilabel_f{}", i), 0.75);
  }
  const std::vector<std::string> many = lines.Of(e);
  CHECK(many.size() == 6);
  for (const std::string& line : many) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
  }
  CHECK(many[0].starts_with("epoch  3/15  train: loss 0.534  accuracy"));
  CHECK(many[3].starts_with("             val:   loss 0.534  accuracy"));
  CHECK(lines.Of(EpochOf(4, 0.5, 0.8)).size() == 2);
}

TEST_CASE("the status line has the epoch of all, the share and the times left") {
  StepEvent e;
  e.epoch = 2;
  e.epochs = 15;
  e.step = 205;
  e.step_in_epoch = 5;
  e.steps_per_epoch = 100;
  e.total_steps = 1500;
  e.loss = 0.51234;
  e.seconds_left = 302;
  e.epoch_seconds_left = 21;
  const std::string step = format("{}", join(PartsOf(e, "images", 3200), "  "));
  CHECK(step.starts_with(
      "epoch  3/15  step 5/100  13 %  loss 0.512  5:02 left, 0:21 in the epoch  lr "));
  ValidationEvent v;
  v.epoch = 2;
  v.epochs = 15;
  v.examples = 120;
  v.total = 500;
  v.seconds_left = 8;
  v.run_seconds_left = 290;
  v.done = 0.2;
  CHECK(format("{}", join(PartsOf(v, "images"), "  ")) ==
        "epoch  3/15  validating 120/500 images  20 %  4:50 left, 0:08 in the validation");
}

}  // namespace
}  // namespace mxtrain::console
