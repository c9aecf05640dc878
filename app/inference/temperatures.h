// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `eval --calibrate` fits to a model's classifiers: temperatures, and thresholds of those that
// predict any number of classes. A file beside the checkpoint holds them,
// CHECKPOINT.temperature.json; a model that is opened for predictions divides its logits by the
// temperatures, and `eval` and `infer` predict classes from their thresholds on.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/base/log.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain::inference {

// By the name of the head (LossReport::Head).
using Temperatures = std::map<std::string, double>;
// By the name of the head, of each class.
using Thresholds = std::map<std::string, std::vector<double>>;

struct HeadCalibration {
  Temperatures temperatures;
  Thresholds thresholds;
};

// That of the checkpoint; none without a file, and, with a warning, if the file is of another state
// of the checkpoint. Throws kData for a damaged file.
HeadCalibration ReadCalibration(const std::string& checkpoint, const Logger& log);
// Returns the name of the file. Throws kFileSystem.
std::string WriteCalibration(const std::string& checkpoint, const HeadCalibration& calibration);

// The net whose SoftmaxOutputs of these names read their logits over the temperature.
Symbol WithTemperatures(const OperatorRegistry& operators, const Symbol& net,
                        const Temperatures& temperatures);

}  // namespace mxtrain::inference
