// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of a model that `infer` runs: data for predictions have no labels.
#include <string>

#include "mxtrain/base/log.h"
#include "mxtrain/train/model.h"

namespace mxtrain::inference {

// The part of the net up to a layer: its output NAME or NAME_output. Throws kUsage, with the
// nearest name.
Symbol LayerOf(const Symbol& net, const std::string& layer);

// Removes the outputs that depend on a label of the model, and the inputs that the other outputs do
// not need. Outputs of SoftmaxOutput and of regressions do not depend on theirs (VariablesRead);
// one that the net computes becomes a variable. A removed output is reported, unless it is the
// value of a loss. Throws kUsage if every output depends on a label, or none on an input.
void RemoveLabels(const OperatorRegistry& operators, Model* model, const Logger& log);

}  // namespace mxtrain::inference
