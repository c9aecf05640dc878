#pragma once
// The metrics that the factory knows. Private to this module.
#include "mxtrain/metric/metric.h"

namespace mxtrain {

// A mean: Add adds to both sums.
class MeanMetric : public Metric {
 public:
  void Reset() override { sum_ = weight_ = 0; }
  double value() const override { return weight_ > 0 ? sum_ / weight_ : 0; }

 protected:
  using Metric::Metric;
  std::vector<double> Sums() const override { return {sum_, weight_}; }
  bool SetSums(const std::vector<double>& sums) override {
    if (sums.size() != 2 || !(sums[1] >= 0)) return false;
    sum_ = sums[0];
    weight_ = sums[1];
    return true;
  }
  double sum_ = 0, weight_ = 0;  // weight_: examples; positions, for outputs that have several
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
std::unique_ptr<Metric> NewR2(const Kwargs& kwargs);
std::unique_ptr<Metric> NewMae(const Kwargs& kwargs);
std::vector<FieldInfo> DescribeAccuracy();
std::vector<FieldInfo> DescribeTopK();
std::vector<FieldInfo> DescribeCrossEntropy();
std::vector<FieldInfo> DescribeF1();
std::vector<FieldInfo> DescribeMultilabelAccuracy();
std::vector<FieldInfo> DescribeMultilabelF1();

}  // namespace mxtrain
