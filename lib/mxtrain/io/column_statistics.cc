// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/column_statistics.h"

#include <algorithm>
#include <cmath>
#include <set>

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

constexpr size_t kMostKnots = 257;

// The number that a normal variable stays below with this probability, 0 < p < 1: by halving, as
// the distribution function rises.
double NormalQuantile(double p) {
  constexpr double kMost = 9;
  constexpr int kHalvings = 64;
  double low = -kMost, high = kMost;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

// `values`: at least one. Of many different numbers those are knots that are nearest to equal steps
// of rank, and those nearest to equal steps among the different ones, which a number that most rows
// have would hide.
ColumnTransform QuantilesOf(std::vector<double> values) {
  std::ranges::sort(values);
  std::vector<double> different, rank;  // each number once, with its middle rank in 0 .. 1
  const auto all = static_cast<double>(values.size());
  for (size_t begin = 0, end = 0; begin < values.size(); begin = end) {
    while (end < values.size() && values[end] == values[begin]) ++end;
    different.push_back(values[begin]);
    rank.push_back(static_cast<double>(begin + end) / 2 / all);
  }
  std::set<size_t> knots;
  const size_t last = different.size() - 1;
  for (size_t i = 0; i < kMostKnots / 2; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(kMostKnots / 2 - 1);
    const auto by_rank = static_cast<size_t>(std::ranges::lower_bound(rank, part) - rank.begin());
    knots.insert(std::min(by_rank, last));
    knots.insert(static_cast<size_t>(std::llround(part * static_cast<double>(last))));
  }
  ColumnTransform transform{ColumnTransform::kQuantile};
  for (size_t i = 0; i <= last; ++i) {
    if (different.size() > kMostKnots && !knots.contains(i)) continue;
    transform.from.push_back(different[i]);
    transform.to.push_back(NormalQuantile(rank[i]));
  }
  return transform.from.size() < 2 ? ColumnTransform() : transform;
}

// The numbers of one element of a field, in all examples.
class ElementLook {
 public:
  explicit ElementLook(ColumnTransform::Kind kind) : kind_(kind) {}
  void Add(double value, const Source& source, int64_t row, const std::string& field) {
    if (kind_ == ColumnTransform::kQuantile) return values_.push_back(value);
    if (kind_ == ColumnTransform::kLog && !(value > 0))
      Throw(ErrorKind::kData, "{}: {:.9g} of '{}' has no logarithm: log is for numbers above 0",
            source.Name(row), value, field);
    moments_.Add(kind_ == ColumnTransform::kLog ? std::log(value) : value);
  }
  bool empty() const { return values_.empty() && moments_.count == 0; }
  ColumnTransform Finish() {
    if (kind_ != ColumnTransform::kQuantile) return {kind_};
    ColumnTransform transform = QuantilesOf(values_);
    for (const double value : values_) moments_.Add(transform.Apply(value));
    return transform;
  }
  const Moments& moments() const { return moments_; }

 private:
  ColumnTransform::Kind kind_;
  Moments moments_;
  std::vector<double> values_;  // of kQuantile
};

}  // namespace

std::vector<ColumnStatistics> MeasureColumns(const Source& source,
                                             const std::vector<std::string>& fields,
                                             const TransformKinds& transforms) {
  std::vector<Seat> seats;
  for (const std::string& field : fields) seats.push_back(FindSeat(source, field));
  std::vector<std::vector<ElementLook>> looks(fields.size());
  Sample sample;
  for (int64_t row = 0; row < source.size(); ++row) {
    source.Read(row, &sample);
    for (size_t f = 0; f < fields.size(); ++f) {
      const std::span<const float> values =
          (seats[f].label ? sample.labels : sample.data)[seats[f].index].values;
      const std::span<const float> rests = source.Rests(row, seats[f].label, seats[f].index);
      const auto kinds = transforms.find(fields[f]);
      for (size_t k = looks[f].size(); k < values.size(); ++k)
        looks[f].emplace_back(kinds == transforms.end() ? ColumnTransform::kNone
                                                        : kinds->second.at(k));
      for (size_t k = 0; k < values.size(); ++k) {
        if (std::isnan(values[k])) continue;
        looks[f][k].Add(double{values[k]} + (rests.empty() ? 0.0 : double{rests[k]}), source, row,
                        fields[f]);
      }
    }
  }
  std::vector<ColumnStatistics> measured;
  for (size_t f = 0; f < fields.size(); ++f) {
    ColumnStatistics& of = measured.emplace_back(ColumnStatistics{fields[f], {}, {}});
    for (size_t k = 0; k < looks[f].size(); ++k) {
      if (looks[f][k].empty())
        Throw(ErrorKind::kData, "'{}': number {} is missing in every training row", fields[f],
              k + 1);
      if (transforms.contains(fields[f])) of.transforms.push_back(looks[f][k].Finish());
      of.mean.push_back(looks[f][k].moments().mean);
      of.std.push_back(looks[f][k].moments().Deviation());
    }
  }
  return measured;
}

Standardization UnitsOfColumns(const std::vector<double>& means, const std::vector<double>& stds,
                               std::vector<ColumnTransform> transforms) {
  Standardization units{means, stds, std::move(transforms)};
  for (size_t k = 0; k < stds.size(); ++k) {
    if (stds[k] == 0) units.mean[k] = 0, units.std[k] = 1;
  }
  return units;
}

}  // namespace mxtrain::io
