// SPDX-License-Identifier: Apache-2.0
#pragma once
// train.weights: initial weights from a file, with the name map of the configuration.
#include "app/commands/session.h"
#include "app/report/console.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// Passes the arrays of the file to the trainer and reports which were used. Does nothing if the
// configuration names no file. Throws as LoadWeights, and kConfig for an invalid map, for a file
// without any matching array, and for one that lacks arrays of a net that is not trained.
void TakePretrained(Session& session, Trainer* trainer, report::Console& console);

}  // namespace mxtrain::commands
