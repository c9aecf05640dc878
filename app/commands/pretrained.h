// SPDX-License-Identifier: Apache-2.0
#pragma once
// train.weights: initial weights from a file, with the name map of the configuration.
#include "app/config/config.h"
#include "app/report/console.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// Passes the arrays of the file to the trainer and reports which were used. Does nothing if the
// configuration names no file. Throws as LoadWeights, and kConfig for an invalid map and for a file
// without any matching array.
void TakePretrained(const config::WeightsConfig& weights, Runtime& runtime, Trainer* trainer,
                    report::Console& console);

}  // namespace mxtrain::commands
