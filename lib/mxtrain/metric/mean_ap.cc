// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/metric/box_scores.h"
#include "mxtrain/metric/internal/metrics.h"

namespace mxtrain {
namespace {

struct MeanApParam : Parameter<MeanApParam> {
  double iou;
  static void Declare(Fields<MeanApParam>& f) {
    f.Add("iou", &MeanApParam::iou)
        .Default(0)
        .Range(0, 1)
        .Help("least intersection over union of a right box; 0: the mean over 0.5, 0.55 .. 0.95");
  }
};

std::string NameOf(const MeanApParam& param) {
  return param.iou == 0 ? "mean_ap" : format("mean_ap_{:g}", 100 * param.iou);
}

// The mean over classes of COCO's average precision, over all examples.
class MeanAp final : public Metric {
 public:
  explicit MeanAp(const MeanApParam& param) : Metric(NameOf(param)), iou_(param.iou) {}

  bool higher_is_better() const override { return true; }
  bool for_evaluation() const override { return true; }
  void Reset() override {
    numbers_.clear();
    value_.reset();
  }
  double value() const override {
    if (!value_) value_ = Measure();
    return *value_;
  }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    const TShape &truth = label.shape, &found = pred.shape;
    if (truth.ndim() != 3 || truth[2] < kTruthColumns || found.ndim() != 3 ||
        found[2] != kFoundColumns) {
      Throw(ErrorKind::kConfig,
            "metric {}: labels {} and output {}; expected rows of class, left, top, right, bottom, "
            "use (N, objects, 6), and of class, score and box (N, boxes, 6)",
            name(), truth.ToString(), found.ToString());
    }
    value_.reset();
    for (int64_t i = 0; i < count; ++i) {
      AddBoxes(label.dptr<float>() + i * truth[1] * truth[2], truth[1], truth[2], kTruthColumns);
      AddBoxes(pred.dptr<float>() + i * found[1] * found[2], found[1], found[2], kFoundColumns);
    }
  }
  std::vector<double> Sums() const override { return numbers_; }
  bool SetSums(const std::vector<double>& sums) override {
    numbers_.clear();
    return AddSums(sums);
  }
  bool AddSums(const std::vector<double>& sums) override {
    if (!IsState(sums)) return false;
    numbers_.insert(numbers_.end(), sums.begin(), sums.end());
    value_.reset();
    return true;
  }

 private:
  static constexpr int64_t kTruthColumns = 6, kFoundColumns = 6;

  // Their number, then the rows that are boxes.
  void AddBoxes(const float* rows, int64_t count, int64_t columns, int64_t kept) {
    const size_t place = numbers_.size();
    numbers_.push_back(0);
    for (int64_t i = 0; i < count; ++i, rows += columns) {
      if (!(rows[0] >= 0)) continue;
      numbers_.insert(numbers_.end(), rows, rows + kept);
      numbers_[place] += 1;
    }
  }
  static bool IsState(const std::vector<double>& numbers) {
    size_t at = 0, lists = 0;
    for (; at < numbers.size(); ++lists) {
      const double count = numbers[at++];
      const auto left = static_cast<double>((numbers.size() - at) / kTruthColumns);
      if (!(count >= 0 && count <= left) || count != std::floor(count)) return false;
      at += static_cast<size_t>(count) * kTruthColumns;
    }
    return lists % 2 == 0;
  }

  double Measure() const {
    constexpr double kMostClasses = 1 << 20;
    double classes = 0;
    ForEachRow([&classes](bool, const double* row) { classes = std::max(classes, row[0] + 1); });
    if (!(classes <= kMostClasses))
      Throw(ErrorKind::kData, "metric {}: {} is no class", name(), classes - 1);
    BoxScores scores(static_cast<int>(classes));
    std::vector<TrueBox> truth;
    std::vector<FoundBox> found;
    ForEachRow(
        [&](bool is_truth, const double* row) {
          const int label = static_cast<int>(row[0]);
          if (is_truth) {
            truth.push_back({label, row[1], row[2], row[3], row[4], -1, row[5] == 2, row[5] == 1});
          } else {
            found.push_back({label, static_cast<float>(row[1]), row[2], row[3], row[4], row[5]});
          }
        },
        [&] {
          scores.Add(truth, found);
          truth.clear();
          found.clear();
        });
    double sum = 0;
    int64_t measured = 0;
    for (const double ap : iou_ == 0 ? scores.ClassAp() : scores.ClassApAt(iou_)) {
      if (std::isnan(ap)) continue;
      sum += ap;
      ++measured;
    }
    return measured > 0 ? sum / static_cast<double>(measured) : kUndefined;
  }
  // row(is_truth, numbers) for every box, and image() after the boxes of each image.
  template <typename Row, typename Image>
  void ForEachRow(Row&& row, Image&& image) const {
    bool is_truth = true;
    for (size_t at = 0; at < numbers_.size(); is_truth = !is_truth) {
      const auto count = static_cast<size_t>(numbers_[at++]);
      for (size_t i = 0; i < count; ++i, at += kTruthColumns) row(is_truth, &numbers_[at]);
      if (!is_truth) image();
    }
  }
  template <typename Row>
  void ForEachRow(Row&& row) const {
    ForEachRow(row, [] {});
  }

  const double iou_;
  // Of each image: the number of its objects, their rows, the number of boxes found, their rows.
  std::vector<double> numbers_;
  mutable std::optional<double> value_;
};

}  // namespace

std::unique_ptr<Metric> NewMeanAp(const Kwargs& kwargs) {
  MeanApParam param;
  param.Init(kwargs, "metric mean_ap");
  return std::make_unique<MeanAp>(param);
}
std::vector<FieldInfo> DescribeMeanAp() {
  return MeanApParam::Describe();
}

}  // namespace mxtrain
