// SPDX-License-Identifier: Apache-2.0
#pragma once
// The metrics known to the factory. Private to this module.
#include <algorithm>
#include <limits>

#include "mxtrain/metric/metric.h"

namespace mxtrain {

inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// A mean: Add increases both sums.
class MeanMetric : public Metric {
 public:
  void Reset() override { sum_ = weight_ = 0; }
  double value() const override { return weight_ > 0 ? sum_ / weight_ : kUndefined; }
  bool takes_weights() const override { return true; }

 protected:
  using Metric::Metric;
  // A value of a row; what has no weight does not count, though it be NaN.
  void AddValue(double value, int64_t row) {
    const double weight = WeightOf(row);
    if (weight == 0) return;
    sum_ += weight * value;
    weight_ += weight;
  }
  std::vector<double> Sums() const override { return {sum_, weight_}; }
  bool SetSums(const std::vector<double>& sums) override {
    if (!IsState(sums)) return false;
    sum_ = sums[0];
    weight_ = sums[1];
    return true;
  }
  bool AddSums(const std::vector<double>& sums) override {
    if (!IsState(sums)) return false;
    sum_ += sums[0];
    weight_ += sums[1];
    return true;
  }
  // weight_: of examples, or of positions for outputs that have several, each with that of its
  // example.
  double sum_ = 0, weight_ = 0;

 private:
  static bool IsState(const std::vector<double>& sums) { return sums.size() == 2 && sums[1] >= 0; }
};

// Counts per class, which give precision, recall, F1 and overlap.
class ClassCountMetric : public Metric {
 public:
  bool higher_is_better() const override { return true; }
  bool takes_weights() const override { return true; }
  void Reset() override { counts_.clear(); }

 protected:
  using Metric::Metric;
  struct Counts {
    double right = 0, labelled = 0, guessed = 0;
    bool none() const { return labelled + guessed == 0; }
    double Iou() const { return right / (labelled + guessed - right); }
    double F1() const { return 2 * right / (labelled + guessed); }  // 2 tp / (2 tp + fp + fn)
  };
  std::vector<double> Sums() const override {
    std::vector<double> sums;
    for (const Counts& n : counts_) sums.insert(sums.end(), {n.right, n.labelled, n.guessed});
    return sums;
  }
  bool SetSums(const std::vector<double>& sums) override {
    if (sums.size() % 3 != 0) return false;
    counts_.clear();
    return AddSums(sums);
  }
  bool AddSums(const std::vector<double>& sums) override {
    if (sums.size() % 3 != 0) return false;
    counts_.resize(std::max(counts_.size(), sums.size() / 3));
    for (size_t i = 0; i < sums.size(); i += 3) {
      Counts& n = counts_[i / 3];
      n = {n.right + sums[i], n.labelled + sums[i + 1], n.guessed + sums[i + 2]};
    }
    return true;
  }
  std::vector<Counts> counts_;  // by class
};

std::unique_ptr<Metric> NewAccuracy(const Kwargs& kwargs);
std::unique_ptr<Metric> NewTopK(const Kwargs& kwargs);
std::unique_ptr<Metric> NewCrossEntropy(const Kwargs& kwargs);
std::unique_ptr<Metric> NewPerplexity(const Kwargs& kwargs);
std::unique_ptr<Metric> NewF1(const Kwargs& kwargs);
std::unique_ptr<Metric> NewMultilabelAccuracy(const Kwargs& kwargs);
std::unique_ptr<Metric> NewMultilabelF1(const Kwargs& kwargs);
std::unique_ptr<Metric> NewAuc(const Kwargs& kwargs);
std::unique_ptr<Metric> NewMse(const Kwargs& kwargs);
std::unique_ptr<Metric> NewRmse(const Kwargs& kwargs);
std::unique_ptr<Metric> NewPsnr(const Kwargs& kwargs);
std::unique_ptr<Metric> NewR2(const Kwargs& kwargs);
std::unique_ptr<Metric> NewMae(const Kwargs& kwargs);
std::unique_ptr<Metric> NewMeanIou(const Kwargs& kwargs);
std::unique_ptr<Metric> NewMeanAp(const Kwargs& kwargs);
std::unique_ptr<Metric> NewCer(const Kwargs& kwargs);
std::unique_ptr<Metric> NewWer(const Kwargs& kwargs);
std::vector<FieldInfo> DescribeAccuracy();
std::vector<FieldInfo> DescribeTopK();
std::vector<FieldInfo> DescribeCrossEntropy();
std::vector<FieldInfo> DescribeF1();
std::vector<FieldInfo> DescribeMeanIou();
std::vector<FieldInfo> DescribeMeanAp();
std::vector<FieldInfo> DescribeCer();
std::vector<FieldInfo> DescribeWer();
std::vector<FieldInfo> DescribeMultilabelAccuracy();
std::vector<FieldInfo> DescribeMultilabelF1();

}  // namespace mxtrain
