// SPDX-License-Identifier: Apache-2.0
#pragma once
// What can be said of one layer from its operator and its keys: which arguments are labels, whether
// its inputs fit, what looks like a mistake. Internal to app/config.
#include <map>
#include <string>
#include <vector>

#include "app/config/net_layers.h"

namespace mxtrain::config {

// Whether the argument is read from the data as a label.
bool IsLabel(const OperatorProperty& op, int argument, const std::string& name);
// Has a label and takes no head gradient.
bool IsLoss(const OperatorProperty& op);

// Checks that every argument has one source: one of the `count` inputs by position, a named one, or
// a parameter that the layer creates. False after an error.
bool CheckInputs(const Layer& layer, const OperatorProperty& op, size_t count,
                 const std::map<std::string, Symbol>& named, Diagnostics* diagnostics);
// Reports keys that are neither parameters nor arguments, for a layer whose parameters are already
// invalid.
void ReportStrangers(const Layer& layer, const std::vector<FieldInfo>& fields,
                     Diagnostics* diagnostics);
// Warns of a pooling without a stride: Keras and PyTorch default it to the kernel size; here it is
// 1, as in MXNet.
void WarnOfOverlap(const Layer& layer, const Kwargs& kwargs, Diagnostics* diagnostics);

// Warns of a SoftmaxOutput that reads a softmax: it applies one itself.
void WarnOfTwoSoftmaxes(const Layer& layer, const Symbol& input, Diagnostics* diagnostics);

}  // namespace mxtrain::config
