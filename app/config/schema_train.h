// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of the table of keys (schema_table.cc) that says how to train.
#include "app/config/schema.h"

namespace mxtrain::config {

// In the order of help and of resolved configurations.
Section<TrainConfig> TrainSection();

}  // namespace mxtrain::config
