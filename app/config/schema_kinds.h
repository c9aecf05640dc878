// SPDX-License-Identifier: Apache-2.0
#pragma once
// What may stand where the table of keys (schema_table.cc) names a kind with parameters: everything
// that a factory of the library creates, with its parameters as that factory describes them.
#include <vector>

#include "app/config/schema.h"

namespace mxtrain::config {

std::vector<NamedKind> TransformKinds();           // of images
std::vector<NamedKind> MetricKinds();              // with `output` and `label`
const std::vector<NamedKind>& InitializerKinds();  // also of a Variable's init
std::vector<NamedKind> OptimizerKinds();           // without clip_gradient, which is train.clip
std::vector<NamedKind> LrScheduleKinds();

// Names in other tools of a parameter of data sources; empty for one that has none.
std::vector<std::string> OtherNamesOfSourceParam(const std::string& name);

// A metric's parameters for its factory: without `output` and `label`, which say what it is
// measured on.
Kwargs ParamsOfMetric(Kwargs params);

}  // namespace mxtrain::config
