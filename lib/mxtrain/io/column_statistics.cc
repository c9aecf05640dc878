// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/column_statistics.h"

#include <cmath>

#include "mxtrain/base/error.h"

namespace mxtrain::io {
namespace {

// Welford's update of a mean and of the sum of squares about it.
struct Moments {
  double count = 0, mean = 0, spread = 0;
  void Add(double value) {
    const double from_mean = value - mean;
    count += 1;
    mean += from_mean / count;
    spread += from_mean * (value - mean);
  }
  double Deviation() const { return spread > 0 ? std::sqrt(spread / count) : 1; }
};

// Position of a field in a sample.
struct Seat {
  bool label = false;
  size_t index = 0;
};

Seat FindSeat(const Source& source, const std::string& field) {
  for (const bool label : {false, true}) {
    const std::vector<FieldSpec>& specs = label ? source.label_fields() : source.data_fields();
    for (size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].name == field && specs[i].kind == FieldKind::kValues) return {label, i};
    }
  }
  Throw(ErrorKind::kConfig, "there are no numbers of '{}' to measure", field);
}

}  // namespace

std::vector<ColumnStatistics> MeasureColumns(const Source& source,
                                             const std::vector<std::string>& fields) {
  std::vector<Seat> seats;
  for (const std::string& field : fields) seats.push_back(FindSeat(source, field));
  std::vector<std::vector<Moments>> moments(fields.size());
  Sample sample;
  for (int64_t row = 0; row < source.size(); ++row) {
    source.Read(row, &sample);
    for (size_t f = 0; f < fields.size(); ++f) {
      const std::span<const float> values =
          (seats[f].label ? sample.labels : sample.data)[seats[f].index].values;
      const std::span<const float> rests = source.Rests(row, seats[f].label, seats[f].index);
      moments[f].resize(values.size());
      for (size_t k = 0; k < values.size(); ++k) {
        if (std::isnan(values[k])) continue;
        moments[f][k].Add(double{values[k]} + (rests.empty() ? 0.0 : double{rests[k]}));
      }
    }
  }
  std::vector<ColumnStatistics> measured;
  for (size_t f = 0; f < fields.size(); ++f) {
    ColumnStatistics& of = measured.emplace_back(ColumnStatistics{fields[f], {}, {}});
    for (size_t k = 0; k < moments[f].size(); ++k) {
      if (moments[f][k].count == 0)
        Throw(ErrorKind::kData, "'{}': number {} is missing in every training row", fields[f],
              k + 1);
      of.mean.push_back(moments[f][k].mean);
      of.std.push_back(moments[f][k].Deviation());
    }
  }
  return measured;
}

Standardization UnitsOfColumns(const std::vector<double>& means, const std::vector<double>& stds) {
  Standardization units{means, stds};
  for (size_t k = 0; k < stds.size(); ++k) {
    if (stds[k] == 0) units.mean[k] = 0, units.std[k] = 1;
  }
  return units;
}

}  // namespace mxtrain::io
