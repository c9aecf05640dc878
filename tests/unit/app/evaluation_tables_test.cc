// SPDX-License-Identifier: Apache-2.0
// Calibration, thresholds and the axes of sweeps, against brute force and worked examples.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <set>

#include "app/commands/sweep_axis.h"
#include "app/tasks/classification/calibration.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {

using namespace tasks;

namespace {

std::vector<Verdict> RandomPredictions(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Verdict> predictions;
  for (int i = 0; i < count; ++i) {
    // Some on the edges of bins.
    const double confidence = i % 7 == 0 ? std::round(uniform(random) * 15) / 15 : uniform(random);
    predictions.push_back({confidence, uniform(random) < confidence});
  }
  return predictions;
}

}  // namespace

TEST_CASE(
    "calibration: every prediction is in exactly one bin, and the error matches its definition") {
  const std::vector<Verdict> predictions = RandomPredictions(500, 3);
  for (int count : {1, 10, 15}) {
    const std::vector<CalibrationBin> bins = CalibrationBins(predictions, count);
    REQUIRE(static_cast<int>(bins.size()) == count);
    double error = 0;
    for (int b = 0; b < count; ++b) {
      double confidence = 0, right = 0, n = 0;
      for (const Verdict& p : predictions) {
        const bool inside = (p.confidence * count > b || (b == 0 && p.confidence == 0)) &&
                            p.confidence * count <= b + 1;
        if (!inside) continue;
        ++n, confidence += p.confidence, right += p.right ? 1 : 0;
      }
      CHECK(bins[static_cast<size_t>(b)].examples == static_cast<int64_t>(n));
      if (n == 0) {
        CHECK(TableCell(bins[static_cast<size_t>(b)].accuracy) == "-");
        CHECK(CsvCell(bins[static_cast<size_t>(b)].confidence) == "");
        continue;
      }
      CHECK(bins[static_cast<size_t>(b)].accuracy == doctest::Approx(right / n));
      error += n / 500 * std::abs(right / n - confidence / n);
    }
    CHECK(ExpectedCalibrationError(bins) == doctest::Approx(error));
  }
  // Sure of everything, right half of the time.
  CHECK(ExpectedCalibrationError(CalibrationBins(std::vector<Verdict>{{1, true}, {1, false}})) ==
        doctest::Approx(0.5));
  CHECK(ExpectedCalibrationError(CalibrationBins({})) == 0);
}

TEST_CASE("calibration: which way scores are from the accuracy") {
  const auto describe = [](const std::vector<Verdict>& v) { return DescribeConfidence(v); };
  CHECK(describe({{1, true}, {1, false}}) == ": scores are 0.5000 above the accuracy, on average");
  CHECK(describe({{0.99, true}, {0.995, false}}).find("above") != std::string::npos);
  CHECK(describe({{0.005, false}, {0.005, false}}) == "");
  CHECK(describe({}) == "");
  // Nobody can tell that scores of two examples are wrong.
  CHECK(describe({{0.5, true}, {0.9, true}})
            .starts_with(": about what chance makes of 2 examples whose scores are right"));
  // Too low in one bin and too high in another, by as much.
  std::vector<Verdict> both;
  for (int i = 0; i < 400; ++i) {
    both.push_back({0.5, i % 10 < 9});
    both.push_back({0.9, i % 2 == 0});
  }
  CHECK(describe(both) ==
        ": some scores are above the accuracy, others below it; see the reliability diagram");
}

TEST_CASE("calibration: the error of right scores is what chance makes") {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> uniform(0, 1);
  double errors = 0, chance = 0;
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<Verdict> verdicts;
    for (int i = 0; i < 200; ++i) {
      const double confidence = 0.4 + 0.6 * uniform(random);
      verdicts.push_back({confidence, uniform(random) < confidence});
    }
    const std::vector<CalibrationBin> bins = CalibrationBins(verdicts);
    errors += ExpectedCalibrationError(bins);
    chance += ChanceCalibrationError(bins);
  }
  CHECK(chance / errors == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("an accuracy has Wilson's interval") {
  // From the closed form, computed by hand: 22 of 24.
  CHECK(WilsonInterval(22, 24).low == doctest::Approx(0.7415).epsilon(1e-3));
  CHECK(WilsonInterval(22, 24).high == doctest::Approx(0.9768).epsilon(1e-3));
  CHECK(WilsonInterval(10, 10).high == doctest::Approx(1));
  CHECK(WilsonInterval(0, 0).high - WilsonInterval(0, 0).low == 1);
}

TEST_CASE("a temperature undoes the factor on logits") {
  // Labels drawn by the softmax of the logits, and scores of the logits times 2.5.
  std::mt19937 random(9);
  std::normal_distribution<double> normal(0, 2);
  std::uniform_real_distribution<double> uniform(0, 1);
  ScoresOfClasses scores;
  scores.classes = 3;
  for (int i = 0; i < 20000; ++i) {
    double logits[3], sum = 0, sharp = 0;
    for (double& z : logits) {
      z = normal(random);
      sum += std::exp(z), sharp += std::exp(2.5 * z);
    }
    double left = uniform(random) * sum;
    size_t truth = 0;
    while (truth < 2 && (left -= std::exp(logits[truth])) > 0) ++truth;
    scores.truths.push_back(truth);
    for (const double z : logits)
      scores.logarithms.push_back(static_cast<float>(2.5 * z - std::log(sharp)));
  }
  CHECK(FitTemperature(scores) == doctest::Approx(2.5).epsilon(0.03));
}

TEST_CASE("confidence thresholds keep predictions above them") {
  const std::vector<Verdict> predictions = RandomPredictions(200, 5);
  for (const ConfidenceThreshold& row : ConfidenceThresholds(predictions)) {
    double kept = 0, right = 0;
    for (const Verdict& p : predictions) {
      if (p.confidence >= row.threshold) ++kept, right += p.right ? 1 : 0;
    }
    CHECK(row.kept == doctest::Approx(kept / 200));
    if (kept > 0) CHECK(row.accuracy == doctest::Approx(right / kept));
  }
  CHECK(ConfidenceThresholds(predictions).front().kept == 1);
  // Of none of these is anything as sure as that.
  const std::vector<ConfidenceThreshold> unsure =
      ConfidenceThresholds(std::vector<Verdict>{{0.55, true}, {0.7, false}});
  CHECK(unsure.back().kept == 0);
  CHECK(TableCell(unsure.back().accuracy) == "-");
  CHECK(TableCell(unsure.front().accuracy) == "0.5000");
}

TEST_CASE("thresholds of a decision: precision, recall and F1 of a worked example") {
  // At 0.5 three are called positive, two of them rightly, of three that are.
  const std::vector<Scored> examples = {
      {0.9, true}, {0.8, false}, {0.6, true}, {0.4, true}, {0.1, false}};
  for (const DecisionThreshold& row : DecisionThresholds(examples)) {
    if (row.threshold != 0.5) continue;
    CHECK(row.precision == doctest::Approx(2.0 / 3));
    CHECK(row.recall == doctest::Approx(2.0 / 3));
    CHECK(row.f1 == doctest::Approx(2.0 / 3));
  }
  CHECK(DecisionThresholds(examples).front().recall == 1);
  // Nothing is called positive.
  CHECK(TableCell(DecisionThresholds(examples).back().precision) == "-");
  CHECK(DecisionThresholds(examples).back().f1 == 0);
  CHECK(DecisionThresholds({}).front().f1 == 0);
}

TEST_CASE("the axes of a sweep") {
  const auto list = ParseSweepAxis("train.lr=[0.1, 1e-3 ,'a,b', [x, y], {name: sgd, k: 2}]");
  REQUIRE(list);
  CHECK(list->key == "train.lr");
  CHECK(list->values ==
        std::vector<std::string>{"0.1", "1e-3", "'a,b'", "[x, y]", "{name: sgd, k: 2}"});
  for (const char* plain : {"train.lr=0.1", "data.train.path=../photos", "name", "a=x..y"})
    CHECK(!ParseSweepAxis(plain));
  CHECK_THROWS_WITH(ParseSweepAxis("a=[]"), doctest::Contains("the list is empty"));
  CHECK_THROWS_WITH(ParseSweepAxis("a=2..1"), doctest::Contains("from the lower"));
  CHECK_THROWS_WITH(Grid({*ParseSweepAxis("a=1..2")}), doctest::Contains("--random"));

  const std::vector<SweepPoint> grid =
      Grid({*ParseSweepAxis("a=[1,2]"), *ParseSweepAxis("b=[x,y,z]")});
  CHECK(std::set<SweepPoint>(grid.begin(), grid.end()).size() == 6);
  CHECK(grid[1] == SweepPoint{{"a", "1"}, {"b", "y"}});
}

TEST_CASE("random draws: within their range, on its scale, the same for the same seed, each once") {
  const std::vector<SweepAxis> axes = {*ParseSweepAxis("lr=1e-4..1"),
                                       *ParseSweepAxis("units=16..20"),
                                       *ParseSweepAxis("p=0.1..0.5")};
  const std::vector<SweepPoint> points = RandomPoints(axes, 400, 9);
  CHECK(points == RandomPoints(axes, 400, 9));
  CHECK(points != RandomPoints(axes, 400, 10));
  int low = 0;
  std::set<std::string> units;
  for (const SweepPoint& point : points) {
    const double lr = std::stod(point[0].second), p = std::stod(point[2].second);
    CHECK((lr >= 1e-4 && lr <= 1));
    CHECK((p >= 0.1 && p <= 0.5));
    low += lr < 0.01 ? 1 : 0;
    units.insert(point[1].second);
  }
  CHECK(std::abs(low - 200) < 50);  // half of the decades; five standard deviations
  CHECK(units == std::set<std::string>{"16", "17", "18", "19", "20"});
  CHECK(RandomPoints({*ParseSweepAxis("a=[1,2]")}, 10, 1).size() == 2);
}

}  // namespace mxtrain::commands
