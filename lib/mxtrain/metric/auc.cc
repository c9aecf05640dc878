// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "mxtrain/base/error.h"
#include "mxtrain/metric/internal/metrics.h"

namespace mxtrain {
namespace {

// Area under the ROC curve: the probability that an example of a class has a higher score for it
// than an example of another class, ties counting half (Mann and Whitney). For two classes that of
// class 1; for one output with labels 0 and 1 that output; otherwise the mean over classes, one
// against the rest. Labels of the output's shape assign any number of classes (above 0.5). A class
// with all examples or none does not count. Stores the scores of all examples. With weights a pair
// of examples counts with the product of theirs.
class Auc final : public Metric {
 public:
  Auc() : Metric("auc") {}
  bool higher_is_better() const override { return true; }
  bool takes_weights() const override { return true; }
  void Reset() override { columns_.clear(); }
  double value() const override {
    double sum = 0;
    int64_t counted = 0;
    for (const Column& column : columns_) {
      const double area = Area(column);
      if (std::isnan(area)) continue;
      sum += area;
      ++counted;
    }
    return counted > 0 ? sum / static_cast<double>(counted) : kUndefined;
  }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    const int64_t width = pred.shape.ndim() > 1 ? pred.shape.Product(1, pred.shape.ndim()) : 1;
    const bool each = label.Size() == pred.Size();  // one label per score
    if (pred.shape.ndim() > 2 || (!each && label.Size() != pred.shape[0])) {
      Throw(ErrorKind::kConfig,
            "metric auc: labels {} do not fit an output {}; it takes class indices (N), or labels "
            "of the output's shape",
            label.shape.ToString(), pred.shape.ToString());
    }
    const int64_t first = !each && width == 2 ? 1 : 0;  // class 1 gives the same as class 0
    columns_.resize(static_cast<size_t>(width - first));
    const float *y = label.dptr<float>(), *p = pred.dptr<float>();
    for (int64_t i = 0; i < count; ++i) {
      const double weight = WeightOf(i);
      if (weight == 0) continue;
      for (int64_t j = first; j < width; ++j) {
        const float score = p[i * width + j];
        const bool positive = each ? y[i * width + j] > 0.5f : y[i] == static_cast<float>(j);
        columns_[static_cast<size_t>(j - first)].push_back(
            {std::isnan(score) ? -std::numeric_limits<float>::infinity() : score,
             positive ? weight : 0, positive ? 0 : weight});
      }
    }
  }
  std::vector<double> Sums() const override {
    std::vector<double> sums = {static_cast<double>(columns_.size())};
    for (const Column& column : columns_) {
      for (const Scored& example : column)
        sums.insert(sums.end(), {static_cast<double>(example.score), Signed(example)});
    }
    return sums;
  }
  bool SetSums(const std::vector<double>& sums) override {
    const size_t columns = sums.empty() || !(sums[0] >= 0) ? 0 : static_cast<size_t>(sums[0]);
    if (sums.empty() || (columns > 0 ? (sums.size() - 1) % (2 * columns) : sums.size() - 1) != 0)
      return false;
    columns_.assign(columns, {});
    const size_t rows = columns > 0 ? (sums.size() - 1) / (2 * columns) : 0;
    for (size_t i = 0; i < columns * rows; ++i)
      columns_[i / rows].push_back(
          FromSigned(static_cast<float>(sums[1 + 2 * i]), sums[2 + 2 * i]));
    return true;
  }
  bool AddSums(const std::vector<double>& sums) override {
    Auc other;
    if (!other.SetSums(sums)) return false;
    if (columns_.empty()) columns_.resize(other.columns_.size());
    if (!other.columns_.empty() && other.columns_.size() != columns_.size()) return false;
    for (size_t i = 0; i < other.columns_.size(); ++i)
      columns_[i].insert(columns_[i].end(), other.columns_[i].begin(), other.columns_[i].end());
    return true;
  }

 private:
  // An example with its weight on the side that it is of: with the class, or without.
  struct Scored {
    float score;
    double positive, negative;
  };
  using Column = std::vector<Scored>;

  // Saved as the weight, negative without the class; 1 without the class as 0.
  static double Signed(const Scored& example) {
    if (example.positive > 0) return example.positive;
    return example.negative == 1 ? 0 : -example.negative;
  }
  static Scored FromSigned(float score, double weight) {
    if (weight > 0) return {score, weight, 0};
    return {score, 0, weight == 0 ? 1 : -weight};
  }

  // Pairs with the higher score on the side of the class, ties by half; NaN if either side has no
  // examples.
  static double Area(Column column) {
    std::ranges::sort(column, {}, &Scored::score);
    double pairs = 0, positives = 0, negatives = 0;
    for (size_t i = 0; i < column.size();) {
      const float score = column[i].score;
      double positive = 0, negative = 0;
      for (; i < column.size() && column[i].score == score; ++i) {
        positive += column[i].positive;
        negative += column[i].negative;
      }
      pairs += positive * (negatives + negative / 2);
      positives += positive;
      negatives += negative;
    }
    return pairs / (positives * negatives);
  }

  std::vector<Column> columns_;
};

}  // namespace

std::unique_ptr<Metric> NewAuc(const Kwargs& kwargs) {
  NoParam().Init(kwargs, "metric auc");
  return std::make_unique<Auc>();
}

}  // namespace mxtrain
