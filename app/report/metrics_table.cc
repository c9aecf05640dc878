// SPDX-License-Identifier: Apache-2.0
#include "app/report/metrics_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::report {
namespace {

constexpr double kMostEpochs = 1e15;  // exact in double, and as an integer
constexpr size_t kMostColumns = 2000;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The part after "train_" or "val_"; "" for other columns.
std::string MeasureOf(const std::string& column) {
  for (const char* prefix : {"train_", "val_"}) {
    if (column.starts_with(prefix)) return column.substr(std::string(prefix).size());
  }
  return "";
}

}  // namespace

std::vector<double> MetricsTable::Column(const std::string& name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  std::vector<double> values;
  if (found == columns.end()) return values;
  const auto column = static_cast<size_t>(found - columns.begin());
  for (const std::vector<double>& row : rows)
    values.push_back(column < row.size() ? row[column] : NAN);
  return values;
}

std::vector<std::string> MetricsTable::Measures() const {
  std::vector<std::string> names;
  for (const std::string& column : columns) {
    const std::string name = MeasureOf(column);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return names;
}

double MetricsTable::BestEpoch() const {
  const std::vector<double> epochs = Column("epoch"), best = Column("best");
  for (size_t i = best.size(); i-- > 0;) {
    if (best[i] == 1) return epochs[i];
  }
  return NAN;
}

std::string Words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  if (line.ends_with(',')) cells.emplace_back();
  return cells;
}

MetricsTable ReadMetrics(const std::string& path) {
  MetricsTable table;
  if (!std::filesystem::exists(path)) return table;
  const std::vector<std::string> lines = Lines(ReadFile(path));
  if (lines.empty()) return table;
  table.columns = CellsOf(lines[0]);
  const std::string first = table.columns.empty() ? "" : table.columns[0];
  if (first != "epoch")
    Throw(ErrorKind::kData, "{} is not a metrics table: its first column is '{}', expected 'epoch'",
          path, first);
  if (table.columns.size() > kMostColumns)
    Throw(ErrorKind::kData, "{} has {} columns, more than the {} of a metrics table", path,
          table.columns.size(), kMostColumns);
  for (size_t i = 1; i < lines.size(); ++i) {
    std::vector<double>& row = table.rows.emplace_back();
    for (const std::string& cell : CellsOf(lines[i])) {
      char* end = nullptr;
      const double value = std::strtod(cell.c_str(), &end);
      row.push_back(end == cell.c_str() ? NAN : value);
    }
    if (row.size() > table.columns.size()) row.resize(table.columns.size());
    if (row.empty() || !(row[0] >= 0 && row[0] <= kMostEpochs))
      Throw(ErrorKind::kData, "{}:{}: it does not begin with the number of an epoch", path, i + 1);
  }
  return table;
}

void AppendMetrics(const std::string& path, const EpochEvent& e) {
  std::string header = "epoch,step,lr,seconds,images_per_second";
  std::string row =
      format("{},{},{},{:.3f},{:.1f}", e.epoch, e.step, e.lr, e.seconds, e.images_per_second);
  const auto add = [&](const char* prefix, const NamedValues& values) {
    for (const auto& [name, value] : values) {
      header += format(",{}_{}", prefix, name);
      row += format(",{}", value);
    }
  };
  add("train", e.train);
  add("val", e.val);
  std::string text = header + ",best\n";
  if (std::filesystem::exists(path)) {
    const std::vector<std::string> lines = Lines(ReadFile(path));
    for (size_t i = 1; i < lines.size(); ++i) {
      if (std::atoll(lines[i].c_str()) < e.epoch) text += lines[i] + "\n";
    }
  }
  WriteFileAtomically(path, text + format("{},{}\n", row, e.best ? 1 : 0));
}

}  // namespace mxtrain::report
