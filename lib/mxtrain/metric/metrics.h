#pragma once
// The metrics that the factory knows. Private to this module.
#include "mxtrain/metric/metric.h"

namespace mxtrain {

std::unique_ptr<Metric> NewAccuracy(const Kwargs& kwargs);
std::unique_ptr<Metric> NewTopK(const Kwargs& kwargs);
std::unique_ptr<Metric> NewCrossEntropy(const Kwargs& kwargs);
std::unique_ptr<Metric> NewMse(const Kwargs& kwargs);
std::unique_ptr<Metric> NewMae(const Kwargs& kwargs);
std::vector<FieldInfo> DescribeAccuracy();
std::vector<FieldInfo> DescribeTopK();
std::vector<FieldInfo> DescribeCrossEntropy();

}  // namespace mxtrain
