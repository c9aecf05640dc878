// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `check` finds in data sets whose examples are texts.
#include "app/commands/check_data.h"

namespace mxtrain::commands {

// Texts that are the same but for case and white space, in both sets, in several classes, or more
// than once; texts that are empty, or cut. Nothing of other data.
DataFindings CheckTexts(const DataSet& train, const DataSet& val);

}  // namespace mxtrain::commands
