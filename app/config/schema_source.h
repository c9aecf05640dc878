// SPDX-License-Identifier: Apache-2.0
#pragma once
// The keys of a data set: data.train and data.val.
#include "app/config/schema.h"

namespace mxtrain::config {

// Those of every source, and the parameters of each kind of io::Sources(). Validation data may be
// held out of the training set; it then has no source of its own.
Section<SourceConfig> SourceSection(bool validation);

}  // namespace mxtrain::config
