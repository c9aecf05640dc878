// SPDX-License-Identifier: Apache-2.0
#include "app/report/run_plots.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "app/report/plot/chart.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/read_json.h"

namespace mxtrain::report {
namespace {

constexpr size_t kMostCharts = 64;  // of metrics, one below the other

std::vector<plot::Point> Points(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<plot::Point> points;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) points.push_back({x[i], y[i]});
  return points;
}

plot::AxisSpec EpochAxis() {
  return {.label = "epoch", .whole = true};
}

// Training and validation by epoch.
plot::Chart Curves(const MetricsTable& table, const std::string& measure) {
  plot::Chart chart;
  chart.title = Words(measure);
  chart.x = EpochAxis();
  chart.y.label = Words(measure);
  const std::vector<double> epochs = table.Column("epoch");
  for (const auto& [prefix, name] :
       {std::pair{"train_", "training"}, std::pair{"val_", "validation"}}) {
    const std::vector<double> values = table.Column(prefix + measure);
    if (!values.empty()) chart.series.push_back({.name = name, .points = Points(epochs, values)});
  }
  if (std::isfinite(table.BestEpoch()))
    chart.marks.push_back({table.BestEpoch(), plot::TickText(table.BestEpoch(), 1) + ": best"});
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

}  // namespace

std::vector<plot::Point> ReadRates(const std::string& events_file) {
  std::map<double, std::vector<plot::Point>> epochs;
  std::istringstream file(std::filesystem::exists(events_file) ? ReadFile(events_file) : "");
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"rates\"") == std::string::npos) continue;
    const Expected<FileJson, Refusal> event = ReadJson<FileJson>(line);
    if (!event) continue;  // incomplete line of a killed process
    std::vector<plot::Point> points;
    try {
      for (const FileJson& rate : event->at("rates"))
        points.push_back({rate.at(0).get<double>(), rate.at(1).get<double>()});
      epochs[event->at("epoch").get<double>()] = std::move(points);
    } catch (const FileJson::exception&) {
      continue;  // no line of ours
    }
  }
  std::vector<plot::Point> all;
  for (const auto& [epoch, points] : epochs) all.insert(all.end(), points.begin(), points.end());
  return all;
}

std::vector<std::pair<std::string, plot::Drawing>> DrawRun(const MetricsTable& table,
                                                           const std::vector<plot::Point>& rates) {
  std::vector<std::pair<std::string, plot::Drawing>> drawings;
  if (table.rows.empty()) return drawings;
  drawings.emplace_back("loss", plot::Draw(Curves(table, "loss")));
  std::optional<plot::Drawing> metrics;
  size_t charts = 0;
  for (const std::string& measure : table.Measures()) {
    if (measure == "loss" || ++charts > kMostCharts) continue;
    const plot::Drawing one = plot::Draw(Curves(table, measure));
    metrics = metrics ? plot::Stack(*metrics, one) : one;
  }
  if (metrics) drawings.emplace_back("metrics", std::move(*metrics));
  const std::vector<plot::Point> points =
      rates.empty() ? Points(table.Column("epoch"), table.Column("lr")) : rates;
  if (!points.empty()) drawings.emplace_back("learning_rate", plot::Draw(LearningRate(points)));
  return drawings;
}

void SaveRunPlots(const std::string& run_folder) {
  const auto drawings =
      DrawRun(ReadMetrics(run_folder + "/metrics.csv"), ReadRates(run_folder + "/events.jsonl"));
  if (!drawings.empty()) MakeOwnFolder(run_folder + "/plots");
  for (const auto& [name, drawing] : drawings)
    plot::Save(drawing, format("{}/plots/{}", run_folder, name));
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
