// SPDX-License-Identifier: Apache-2.0
#include "app/report/monitor.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "app/report/metrics_table.h"
#include "app/report/plot/chart.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"

namespace mxtrain::report {
namespace {

constexpr size_t kMostCurves = 12;
constexpr size_t kMostWaiting = 10'000;  // rows

std::string TableOf(const std::string& run_folder) {
  return run_folder + "/monitor.csv";
}

using Cells = std::vector<std::string>;

struct Table {
  Cells columns;  // "step", "name" and the statistics
  std::vector<Cells> rows;
};

// Empty if there is none. A line that a killed process left incomplete is not a row. Throws kData
// for a file that is not such a table.
Table ReadTable(const std::string& path) {
  Table table;
  if (!std::filesystem::exists(path)) return table;
  std::istringstream lines(ReadFile(path));
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    Cells cells = CellsOf(line);
    if (table.columns.empty()) {
      table.columns = std::move(cells);
      if (table.columns.size() < 3 || table.columns[0] != "step" || table.columns[1] != "name")
        Throw(ErrorKind::kData, "{} is not a table of train.monitor: it does not begin with {}",
              path, "step,name,");
    } else if (cells.size() == table.columns.size()) {
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

plot::Chart ChartOf(const Table& table, size_t column, const std::vector<std::string>& names) {
  plot::Chart chart;
  chart.title = table.columns[column];
  if (names.size() > kMostCurves)
    chart.subtitle = format("the first {} of {} arrays", kMostCurves, names.size());
  chart.x = {.label = "step", .whole = true};
  chart.y.label = table.columns[column];
  std::map<std::string, size_t> series;
  for (const std::string& name : names) {
    if (series.size() == kMostCurves) break;
    const size_t index = chart.series.size();
    series[name] = index;
    chart.series.push_back({.name = name, .dashed = index >= plot::kSeriesColours});
  }
  for (const Cells& cells : table.rows) {
    const auto found = series.find(cells[1]);
    if (found == series.end() || cells[column].empty()) continue;
    chart.series[found->second].points.push_back(
        {std::strtod(cells[0].c_str(), nullptr), std::strtod(cells[column].c_str(), nullptr)});
  }
  return chart;
}

}  // namespace

MonitorRows::MonitorRows(std::vector<std::string> statistics) : statistics_(std::move(statistics)) {
  const std::vector<std::string>& all = StatisticNames();
  if (statistics_.empty())
    Throw(ErrorKind::kConfig, "train.monitor.statistics is empty; name one: {}", join(all, ", "));
  for (const std::string& name : statistics_) {
    const auto found = std::find(all.begin(), all.end(), name);
    if (found == all.end()) Throw(ErrorKind::kConfig, "there is no statistic '{}'", name);
    columns_.push_back(static_cast<size_t>(found - all.begin()));
  }
}

void MonitorRows::Add(int64_t step, const std::string& name, const TBlob& value) {
  const std::vector<double> all = StatisticsOf(value);
  Row row{step, name, ""};
  for (const size_t column : columns_) row.values += format(",{}", all[column]);
  const MutexLock lock(mutex_);
  rows_.push_back(std::move(row));
}

size_t MonitorRows::waiting() const {
  const MutexLock lock(mutex_);
  return rows_.size();
}

std::string MonitorRows::Take() {
  std::vector<Row> rows;
  {
    const MutexLock lock(mutex_);
    rows.swap(rows_);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.step, a.name) < std::tie(b.step, b.name);
  });
  std::string text;
  for (const Row& row : rows) text += format("{},{}{}\n", row.step, row.name, row.values);
  return text;
}

MonitorListener::MonitorListener(std::string run_folder, std::shared_ptr<MonitorRows> rows)
    : run_folder_(std::move(run_folder)), rows_(std::move(rows)) {}

// Keeps the rows of steps that were made, under the columns of now: a resumed run may have others.
void MonitorListener::OnStart(const RunStart& start) {
  const Table before = start.first_step > 0 ? ReadTable(TableOf(run_folder_)) : Table();
  std::string text = format("step,name,{}\n", join(rows_->statistics(), ","));
  for (const Cells& cells : before.rows) {
    if (std::strtoll(cells[0].c_str(), nullptr, 10) > start.first_step) continue;
    text += cells[0] + "," + cells[1];
    for (const std::string& name : rows_->statistics()) {
      const auto found = std::find(before.columns.begin() + 2, before.columns.end(), name);
      text += ",";
      if (found != before.columns.end())
        text += cells[static_cast<size_t>(found - before.columns.begin())];
    }
    text += "\n";
  }
  WriteFileAtomically(TableOf(run_folder_), text);
}

void MonitorListener::OnStep(const StepEvent&) {
  if (rows_->waiting() >= kMostWaiting) Write();
}

void MonitorListener::Write() {
  const std::string rows = rows_->Take();
  if (rows.empty()) return;
  std::ofstream file(TableOf(run_folder_), std::ios::app | std::ios::binary);
  file << rows;
  file.close();
  if (!file) Throw(ErrorKind::kFileSystem, "{} cannot be written", TableOf(run_folder_));
}

void MonitorListener::Finish() {
  Write();
  SaveMonitorPlot(run_folder_);
}

void SaveMonitorPlot(const std::string& run_folder) {
  const Table table = ReadTable(TableOf(run_folder));
  std::vector<std::string> names;  // in order of appearance
  for (const Cells& cells : table.rows) {
    if (std::find(names.begin(), names.end(), cells[1]) == names.end()) names.push_back(cells[1]);
  }
  if (names.empty()) return;
  std::optional<plot::Drawing> all;
  for (size_t column = 2; column < table.columns.size(); ++column) {
    const plot::Drawing one = plot::Draw(ChartOf(table, column, names));
    all = all ? plot::Stack(*all, one) : one;
  }
  MakeOwnFolder(run_folder + "/plots");
  plot::Save(*all, run_folder + "/plots/monitor");
}

}  // namespace mxtrain::report
