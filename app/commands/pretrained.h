#pragma once
// train.weights: first values of a net from a file, with the map of names that the configuration gives.
#include "app/config/config.h"
#include "app/report/console.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// Gives the arrays of the file to the trainer and says what became of them. Does nothing where the configuration names no file. Throws what
// LoadWeights throws, kConfig for a map that cannot be read and for a file of which no array fits.
void TakePretrained(const config::WeightsConfig& weights, Runtime& runtime, Trainer* trainer, report::Console& console);

}  // namespace mxtrain::commands
