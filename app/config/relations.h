// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constraints between keys, which the table of keys (schema.h) cannot express.
#include "app/config/load.h"

namespace mxtrain::config {

// Checks what follows from the configuration alone. Errors go to `diagnostics`.
void CheckRelations(const LoadedConfig& loaded, Diagnostics* diagnostics);

// Checks the keys that depend on train.metrics: `best`, early_stop.target, label_delim. LoadConfig
// calls it if the metrics are given; code that chooses default metrics for a net calls it
// afterwards.
void CheckMetrics(const LoadedConfig& loaded, Diagnostics* diagnostics);

}  // namespace mxtrain::config
