// SPDX-License-Identifier: Apache-2.0
#pragma once
// The classes of the data and those of the net: their number, and their weights in the loss.
#include <string>
#include <vector>

#include "app/session/data_sets.h"
#include "app/session/session_view.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::session {

// Compares the classes of the data with those of the net: throws DiagnosticError if the data has
// more, warns if it has fewer.
void CheckClassCount(const std::vector<std::string>& class_names, const SessionView& session);

// The net with train.class_weights as a parameter of its SoftmaxOutput; the net itself without
// them. Opens the training set if they depend on it; if that is missing, the net is returned as it
// is, and the code that reads the data reports it. Throws DiagnosticError for weights that do not
// fit.
Symbol WithWeightsOfClasses(const SessionView& session, const OperatorRegistry& operators,
                            DataSets& data);

}  // namespace mxtrain::session
