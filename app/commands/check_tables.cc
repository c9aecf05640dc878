// SPDX-License-Identifier: Apache-2.0
#include "app/commands/check_tables.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "mxtrain/base/error.h"
#include "mxtrain/io/find_table_columns.h"

namespace mxtrain::commands {
namespace {

constexpr size_t kLeastRows = 20;    // from which a column that tells the label is no chance
constexpr size_t kRowsOfValue = 10;  // at least, on average, of a column of categories
constexpr double kMostOutliers = 1.0 / 200;  // more of them are how the column is

struct TableValues {
  std::string name;  // of the column
  std::string input;
  std::vector<double> values;  // of the rows that can be read
  bool label = false;
  bool classes = false;  // of a label: its numbers are classes
};

std::vector<const io::FieldSpec*> SpecsOf(const io::Source& source, bool labels) {
  std::vector<const io::FieldSpec*> specs;
  for (const io::FieldSpec& spec : labels ? source.label_fields() : source.data_fields())
    specs.push_back(&spec);
  return specs;
}

// The columns of one kind, without numbers; and where each begins in the rows' values.
std::vector<TableValues> ColumnsOf(const io::Source& source, bool labels,
                                   const std::vector<config::Column>& named) {
  std::vector<TableValues> columns;
  for (const io::FieldSpec* spec : SpecsOf(source, labels)) {
    const auto of = std::ranges::find(named, spec->name, &config::Column::input);
    if (spec->kind != io::FieldKind::kValues || of == named.end()) continue;
    if (spec->shape.Size() != std::ssize(of->columns)) continue;  // a label of several classes
    for (const std::string& name : of->columns) columns.push_back({name, spec->name, {}, labels});
  }
  return columns;
}

// False for an example whose image cannot be read, which is told of elsewhere.
bool ReadIfGood(const io::Source& source, int64_t row, io::Sample* sample) {
  try {
    source.Read(row, sample);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
    return false;
  }
}

// The rows whose values these are: all that can be read.
std::vector<int64_t> ReadValues(const io::Source& source, std::vector<TableValues>* columns) {
  const std::vector<const io::FieldSpec*> data = SpecsOf(source, false),
                                          labels = SpecsOf(source, true);
  io::Sample sample;
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < source.size(); ++row) {
    if (!ReadIfGood(source, row, &sample)) continue;
    rows.push_back(row);
    size_t column = 0;
    for (const bool label : {false, true}) {
      const auto& specs = label ? labels : data;
      for (size_t f = 0; f < specs.size() && column < columns->size(); ++f) {
        if (specs[f]->name != (*columns)[column].input || (*columns)[column].label != label)
          continue;
        const std::span<const float> read = (label ? sample.labels : sample.data)[f].values;
        std::vector<float> values(read.begin(), read.end());
        if (specs[f]->units) specs[f]->units->Restore(&values);
        for (const float value : values) (*columns)[column++].values.push_back(double{value});
      }
    }
  }
  return rows;
}

bool IsConstant(const TableValues& column) {
  return std::ranges::all_of(column.values, [&](double v) { return v == column.values[0]; });
}

double Correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto count = static_cast<double>(x.size());
  const double mx = std::accumulate(x.begin(), x.end(), 0.0) / count;
  const double my = std::accumulate(y.begin(), y.end(), 0.0) / count;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
    xy += (x[i] - mx) * (y[i] - my);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

std::vector<size_t> OrderBy(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&values](size_t i) { return values[i]; });
  return order;
}

// Whether each value has one label, and there are far fewer values than rows, or one interval of
// values for each of the labels.
bool TellsAlone(const TableValues& column, const TableValues& label) {
  const std::vector<size_t> order = OrderBy(column.values);
  size_t values = 1, intervals = 1;
  for (size_t i = 1; i < order.size(); ++i) {
    const bool same_value = column.values[order[i]] == column.values[order[i - 1]];
    const bool same_label = label.values[order[i]] == label.values[order[i - 1]];
    if (same_value && !same_label) return false;
    values += same_value ? 0 : 1;
    intervals += same_label ? 0 : 1;
  }
  std::vector<double> labels = label.values;
  std::ranges::sort(labels);
  const auto different =
      static_cast<size_t>(std::unique(labels.begin(), labels.end()) - labels.begin());
  if (different * kRowsOfValue > order.size()) return false;
  return values * kRowsOfValue <= order.size() || intervals == different;
}

std::optional<std::string> WhyAnswer(const TableValues& column, const TableValues& label) {
  constexpr double kSame = 1e-9;
  if (label.values.size() < kLeastRows || IsConstant(label)) return std::nullopt;
  if (column.values == label.values)
    return format("column '{}' is the label '{}' in every row", column.name, label.name);
  if (!label.classes && std::abs(Correlation(column.values, label.values)) > 1 - kSame)
    return format("column '{}' is the label '{}' apart from a factor and an offset", column.name,
                  label.name);
  if (TellsAlone(column, label))
    return format("column '{}' alone tells the label '{}' in every row", column.name, label.name);
  return std::nullopt;
}

// Few numbers that are far from the middle half.
std::vector<size_t> FarRows(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const double low = sorted[sorted.size() / 4], high = sorted[sorted.size() * 3 / 4];
  std::vector<size_t> rows;
  if (!(high > low)) return rows;
  for (size_t row = 0; row < values.size(); ++row) {
    const double away = std::max(low - values[row], values[row] - high);
    if (away > kFar * (high - low)) rows.push_back(row);
  }
  if (static_cast<double>(rows.size()) >
      std::max(1.0, kMostOutliers * static_cast<double>(values.size())))
    rows.clear();
  return rows;
}

// The bytes of all inputs of a row.
std::string InputsOf(const io::Source& source, int64_t row, io::Sample* sample) {
  source.Read(row, sample);
  std::string key;
  for (const io::FieldValue& value : sample->data)
    key.append(reinterpret_cast<const char*>(value.values.data()), value.values.size_bytes());
  return key;
}

bool ReadsImages(const io::Source& source) {
  return std::ranges::any_of(source.data_fields(), [](const io::FieldSpec& field) {
    return field.kind != io::FieldKind::kValues;
  });
}

// Where equal inputs have other classes, and where validation rows are training rows.
void CompareRows(const DataSet& train, const DataSet& val, DataFindings* found) {
  std::unordered_map<std::string, int64_t> first;  // training row of these inputs
  std::vector<std::string> contradicting, shared;
  io::Sample sample;
  for (int64_t row = 0; row < train.source->size(); ++row) {
    const auto [same, is_new] = first.try_emplace(InputsOf(*train.source, row, &sample), row);
    const std::optional<int> one = train.source->ClassOf(row),
                             other = train.source->ClassOf(same->second);
    if (is_new || !one || !other || *one == *other) continue;
    const std::vector<std::string>& names = train.source->class_names();
    contradicting.push_back(
        format("{} ({}) is {} ({})", train.source->Name(row), names[static_cast<size_t>(*one)],
               train.source->Name(same->second), names[static_cast<size_t>(*other)]));
  }
  for (int64_t row = 0; val.source && row < val.source->size(); ++row) {
    const auto same = first.find(InputsOf(*val.source, row, &sample));
    if (same == first.end() || val.source->ClassOf(row) != train.source->ClassOf(same->second))
      continue;
    shared.push_back(format("{} is {}", val.source->Name(row), train.source->Name(same->second)));
  }
  AddTold(contradicting, "training row", "has the inputs of another row and another class",
          "have the inputs of another row and another class", &found->notes);
  if (train.source->num_classes() > 0)
    AddTold(shared, "validation row", "is also a training row", "are also training rows",
            &found->notes);
}

}  // namespace

DataFindings CheckTable(const DataSet& train, const DataSet& val,
                        const std::vector<config::Column>& columns) {
  DataFindings found;
  if (columns.empty() || !train.source || train.source->size() == 0) return found;
  std::vector<TableValues> inputs = ColumnsOf(*train.source, false, columns),
                           labels = ColumnsOf(*train.source, true, columns);
  const size_t count = inputs.size();
  inputs.insert(inputs.end(), labels.begin(), labels.end());
  const std::vector<int64_t> rows = ReadValues(*train.source, &inputs);
  if (rows.empty()) return found;
  labels.assign(inputs.begin() + static_cast<std::ptrdiff_t>(count), inputs.end());
  inputs.resize(count);
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i].classes = i == 0 && train.source->num_classes() > 0;
  for (const TableValues& column : inputs) {
    if (IsConstant(column)) {
      found.findings.push_back(
          {format("column '{}' is the same in every training row", column.name), {}});
      continue;
    }
    for (const TableValues& label : labels) {
      if (const auto why = WhyAnswer(column, label))
        found.findings.push_back(
            {*why + ": is it known where the label is not? A net that reads it learns nothing else",
             {}});
    }
    std::vector<std::string> far;
    for (const size_t i : FarRows(column.values))
      far.push_back(format("{} ({:.6g})", train.source->Name(rows[i]), column.values[i]));
    AddTold(far, "number", "is far from all others", "are far from all others", &found.notes,
            format("column '{}': ", column.name));
  }
  if (!ReadsImages(*train.source)) CompareRows(train, val, &found);
  return found;
}

}  // namespace mxtrain::commands
