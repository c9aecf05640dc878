// SPDX-License-Identifier: Apache-2.0
#include "app/report/run_plots.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/math.h"
#include "mxtrain/base/read_json.h"

namespace mxtrain::report {
namespace {

constexpr size_t kMostCharts = 64;  // of metrics, one below the other

std::vector<plot::Point> Points(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<plot::Point> points;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) points.push_back({x[i], y[i]});
  return points;
}

// Of every chart of a run: all begin with the first step, and stand one below the other.
plot::AxisSpec EpochAxis() {
  return {.label = "epoch", .whole = true, .low = 0};
}

// Training and validation by epoch.
plot::Chart Curves(const MetricsTable& table, const std::string& measure) {
  plot::Chart chart;
  chart.title = Words(measure);
  chart.x = EpochAxis();
  chart.y.label = Words(measure);
  const std::vector<double> epochs = table.Column("epoch");
  static constexpr struct {
    const char *prefix, *name;
    plot::Colour colour;
  } kParts[] = {{"train_", "training", plot::kBlue}, {"val_", "validation", plot::kVermilion}};
  for (const auto& part : kParts) {
    const std::vector<double> values = table.Column(part.prefix + measure);
    if (values.empty()) continue;
    chart.series.push_back(
        {.name = part.name, .points = Points(epochs, values), .colour = part.colour});
  }
  if (std::isfinite(table.BestEpoch()))
    chart.marks.push_back({table.BestEpoch(), plot::TickText(table.BestEpoch(), 1) + ": best"});
  return chart;
}

// Also within the epochs, if they are long: a few means over many short epochs are a coarser curve
// than theirs, of other steps. Losses that differ by an order are on a logarithmic axis: those of
// the first steps would press the others to the ground.
plot::Chart LossOf(const MetricsTable& table, const std::vector<plot::Point>& steps) {
  plot::Chart chart = Curves(table, "loss");
  if (steps.size() > 1 && steps.size() >= 2 * table.rows.size()) {
    chart.series.insert(chart.series.begin(),
                        {.name = "training, by step", .points = steps, .colour = plot::kSky});
  }
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const plot::Chart::Series& series : chart.series) {
    for (const plot::Point& point : series.points) {
      if (std::isfinite(point.y)) low = std::min(low, point.y), high = std::max(high, point.y);
    }
  }
  chart.y.log = low > 0 && high > 20 * low;
  return chart;
}

plot::Chart LearningRate(const std::vector<plot::Point>& points) {
  std::vector<double> sorted;
  for (const plot::Point& point : points) {
    if (std::isfinite(point.y)) sorted.push_back(point.y);  // the others have no order
  }
  std::sort(sorted.begin(), sorted.end());
  // If most of the run has rates that a linear axis would show as 0.
  const bool log =
      !sorted.empty() && sorted.front() > 0 && sorted[sorted.size() / 2] < sorted.back() / 20;
  plot::Chart chart;
  chart.title = "learning rate";
  chart.x = EpochAxis();
  chart.y = {.label = "learning rate", .log = log};
  chart.series.push_back({.name = "", .points = points});
  return chart;
}

// Means over equal parts of the run, if there are more steps than a figure shows.
std::vector<plot::Point> Thinned(const std::map<double, double>& losses, double steps_per_epoch) {
  constexpr size_t kMost = 400;
  const size_t together = CeilDivide(losses.size(), kMost);
  std::vector<plot::Point> points;
  size_t count = 0;
  plot::Point sum;
  for (const auto& [step, loss] : losses) {
    sum.x += step / steps_per_epoch, sum.y += loss;
    if (++count < together && step != losses.rbegin()->first) continue;
    points.push_back({sum.x / static_cast<double>(count), sum.y / static_cast<double>(count)});
    count = 0, sum = {};
  }
  return points;
}

}  // namespace

StepCurves ReadSteps(const std::string& events_file) {
  std::map<double, std::vector<plot::Point>> epochs;
  std::map<double, double> losses;  // by step
  double steps_per_epoch = 0;
  std::istringstream file(std::filesystem::exists(events_file) ? ReadFile(events_file) : "");
  for (std::string line; std::getline(file, line);) {
    const auto has = [&line](const char* key) { return line.find(key) != std::string::npos; };
    if (!has("\"rates\"") && !has("\"recent_loss\"") && !has("\"first_step\"")) continue;
    const Expected<FileJson, Refusal> event = ReadJson<FileJson>(line);
    if (!event) continue;  // incomplete line of a killed process
    try {
      if (event->contains("rates")) {
        std::vector<plot::Point> points;
        for (const FileJson& rate : event->at("rates"))
          points.push_back({rate.at(0).get<double>(), rate.at(1).get<double>()});
        epochs[event->at("epoch").get<double>()] = std::move(points);
      } else if (event->contains("first_step")) {
        steps_per_epoch = event->at("steps_per_epoch").get<double>();
        // Resumed: what comes after is repeated.
        losses.erase(losses.upper_bound(event->at("first_step").get<double>()), losses.end());
      } else {
        losses[event->at("step").get<double>()] = event->at("recent_loss").get<double>();
      }
    } catch (const FileJson::exception&) {
      continue;  // no line of ours
    }
  }
  StepCurves all;
  for (const auto& [epoch, points] : epochs)
    all.rates.insert(all.rates.end(), points.begin(), points.end());
  if (steps_per_epoch >= 1) all.losses = Thinned(losses, steps_per_epoch);
  return all;
}

RunCharts ChartsOf(const MetricsTable& table, const StepCurves& steps) {
  RunCharts charts;
  if (table.rows.empty()) return charts;
  charts.loss = LossOf(table, steps.losses);
  for (const std::string& measure : table.Measures()) {
    if (measure != "loss" && charts.metrics.size() < kMostCharts)
      charts.metrics.push_back(Curves(table, measure));
  }
  const std::vector<plot::Point> points =
      steps.rates.empty() ? Points(table.Column("epoch"), table.Column("lr")) : steps.rates;
  if (!points.empty()) charts.rate = LearningRate(points);
  return charts;
}

void SaveRunPlots(const std::string& run_folder) {
  const RunCharts charts =
      ChartsOf(ReadMetrics(run_folder + "/metrics.csv"), ReadSteps(run_folder + "/events.jsonl"));
  const auto save = [&run_folder](const char* name, const plot::Drawing& drawing) {
    plot::Save(drawing, format("{}/plots/{}", run_folder, name));
  };
  if (charts.loss) MakeOwnFolder(run_folder + "/plots");
  if (charts.loss) save("loss", plot::Draw(*charts.loss));
  std::optional<plot::Drawing> metrics;
  for (const plot::Chart& chart : charts.metrics) {
    const plot::Drawing one = plot::Draw(chart);
    metrics = metrics ? plot::Stack(*metrics, one) : one;
  }
  if (metrics) save("metrics", *metrics);
  if (charts.rate) save("learning_rate", plot::Draw(*charts.rate));
}

void PlotListener::OnEpoch(const EpochEvent&) {
  if (behind_) Draw();
  behind_ = true;
}

void PlotListener::OnSave(const SaveEvent&) {
  if (behind_) Draw();
}

void PlotListener::Draw() {
  behind_ = false;
  const Time::time_point begin = Time::now();
  if (begin < due_) return;
  SaveRunPlots(run_folder_);
  due_ = begin + 100 * (Time::now() - begin);
}

}  // namespace mxtrain::report
