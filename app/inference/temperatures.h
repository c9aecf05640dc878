// SPDX-License-Identifier: Apache-2.0
#pragma once
// Temperatures of a model's classifiers, which `eval --calibrate` fits: a file beside the
// checkpoint holds them, CHECKPOINT.temperature.json, and a model that is opened for predictions
// divides its logits by them.
#include <map>
#include <string>

#include "mxtrain/base/log.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain::inference {

// By the name of the head (LossReport::Head).
using Temperatures = std::map<std::string, double>;

// Those of the checkpoint; none without a file, and, with a warning, if the file is of another
// state of the checkpoint. Throws kData for a damaged file.
Temperatures ReadTemperatures(const std::string& checkpoint, const Logger& log);
// Returns the name of the file. Throws kFileSystem.
std::string WriteTemperatures(const std::string& checkpoint, const Temperatures& temperatures);

// The net whose SoftmaxOutputs of these names read their logits over the temperature.
Symbol WithTemperatures(const OperatorRegistry& operators, const Symbol& net,
                        const Temperatures& temperatures);

}  // namespace mxtrain::inference
