// SPDX-License-Identifier: Apache-2.0
// The data of a run's plots.
#include "app/report/run_plots.h"

#include <doctest/doctest.h>

#include "mxtrain/base/format.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::report {

TEST_CASE(
    "learning rates of a run: several per epoch, of its last repetition, only from complete "
    "lines") {
  const test::TempDir dir;
  dir.Write("events.jsonl",
            R"({"event":"start","schema":1}
{"event":"epoch","epoch":1,"lr":0.3,"rates":[[0,0.1],[0.5,0.2],[0.75,0.3]]}
{"event":"epoch","epoch":2,"lr":0.9,"rates":[[1,0.9]]}
{"event":"epoch","epoch":2,"lr":0.5,"rates":[[1,0.4],[1.5,0.5]]}
{"event":"epoch","epoch":3,"rates":[[2,)");
  const std::vector<plot::Point> points = ReadSteps(dir.path("events.jsonl")).rates;
  REQUIRE(points.size() == 5);
  CHECK(points[1].x == 0.5);
  CHECK(points[1].y == 0.2);
  CHECK(points[3].x == 1);
  CHECK(points[3].y == 0.4);
  CHECK(points[4].y == 0.5);
  CHECK(ReadSteps(dir.path("nowhere")).rates.empty());
}

TEST_CASE("losses of steps make the curve of a run of one epoch, repeated ones once") {
  const test::TempDir dir;
  dir.Write("events.jsonl",
            R"({"event":"start","steps_per_epoch":10,"first_step":0}
{"event":"step","epoch":0,"step":2,"loss":3,"recent_loss":4}
{"event":"step","epoch":0,"step":6,"loss":3,"recent_loss":9}
{"event":"start","steps_per_epoch":10,"first_step":4}
{"event":"step","epoch":0,"step":5,"loss":3,"recent_loss":0.5}
{"event":"step","epoch":0,"step":9,"loss":3,"recent_loss":0.1}
)");
  const StepCurves steps = ReadSteps(dir.path("events.jsonl"));
  REQUIRE(steps.losses.size() == 3);
  const double x[] = {0.2, 0.5, 0.9}, y[] = {4, 0.5, 0.1};
  for (size_t i = 0; i < 3; ++i) {
    CHECK(steps.losses[i].x == doctest::Approx(x[i]));
    CHECK(steps.losses[i].y == y[i]);
  }
  dir.Write("metrics.csv", "epoch,step,lr,train_loss,val_loss,best\n1,10,0.1,2,0.2,1\n");
  const RunCharts charts = ChartsOf(ReadMetrics(dir.path("metrics.csv")), steps);
  REQUIRE(charts.loss);
  CHECK(charts.loss->y.log);  // 0.1 to 4
  REQUIRE(charts.loss->series.size() == 3);
  CHECK(charts.loss->series[0].name == "training, by step");
  // The dots of the epoch, one sample in the legend each, and the curve.
  const std::string svg = plot::ToSvg(plot::Draw(*charts.loss));
  CHECK(svg.find("stroke=\"#56b4e9\"") != svg.rfind("stroke=\"#56b4e9\""));
}

TEST_CASE(
    "losses of steps that are fewer than twice the epochs are not drawn, axes begin together") {
  const test::TempDir dir;
  std::string table = "epoch,step,lr,train_loss,val_loss,val_accuracy,best\n";
  for (int epoch = 1; epoch <= 5; ++epoch)
    table += format("{0},{0}0,0.1,{1},{1},0.5,1\n", epoch, 1.0 / epoch);
  dir.Write("metrics.csv", table);
  StepCurves steps;
  for (const size_t count : {6, 9, 10}) {
    steps.losses.clear();
    for (size_t k = 0; k < count; ++k) steps.losses.push_back({0.5 * static_cast<double>(k), 1});
    const RunCharts charts = ChartsOf(ReadMetrics(dir.path("metrics.csv")), steps);
    REQUIRE(charts.loss);
    CHECK(charts.loss->series.size() == (count < 10 ? 2 : 3));
    REQUIRE(charts.metrics.size() == 1);
    CHECK(charts.loss->x.low == charts.metrics[0].x.low);
  }
}

TEST_CASE("of thousands of losses some hundred means are drawn") {
  const test::TempDir dir;
  std::string events = R"({"event":"start","steps_per_epoch":1000,"first_step":0})"
                       "\n";
  for (int step = 1; step <= 1900; ++step)
    events += format("{{\"event\":\"step\",\"step\":{},\"recent_loss\":{}}}\n", step, step % 2);
  dir.Write("events.jsonl", events);
  const std::vector<plot::Point> points = ReadSteps(dir.path("events.jsonl")).losses;
  CHECK(points.size() == 380);
  CHECK(points.front().x == doctest::Approx(0.003));
  CHECK(points.back().x == doctest::Approx(1.898));
  CHECK(points.front().y == doctest::Approx(0.6));
}

}  // namespace mxtrain::report
