// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kinds of metrics, by name. Those of the library are in the list of metric.cc.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/metric/metric.h"

namespace mxtrain {

struct MXTRAIN_API MetricKind {
  std::string name;
  std::vector<std::string> aliases;  // other names, such as MXNet's
  // Throws kConfig for parameters that it does not have.
  std::function<std::unique_ptr<Metric>(const Kwargs& params)> make;
  std::function<std::vector<FieldInfo>()> describe;  // the parameters
};

// A kind of another program's: before the first configuration is read, from one thread. Throws
// kConfig if there is one of that name.
MXTRAIN_API void RegisterMetric(MetricKind kind);

}  // namespace mxtrain
