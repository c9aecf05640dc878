// SPDX-License-Identifier: Apache-2.0
#pragma once
// The `train` section of a configuration as options of the trainer.
#include <vector>

#include "app/commands/batch_fit.h"
#include "app/config/config.h"
#include "mxtrain/train/bind_request.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// Those of train.metrics; none if that is not given.
std::vector<MetricSpec> MetricsOf(const config::TrainConfig& train);

// How nets are bound. `devices`: those of --device. Throws kConfig for several of them together
// with several workers on one.
BindOptions BindOptionsOf(const config::TrainConfig& train, const std::vector<Context>& devices,
                          bool deterministic);

// Everything but TrainOptions::model. Throws as BindOptionsOf.
TrainOptions TrainOptionsOf(const config::TrainConfig& train, const Symbol& net,
                            const std::vector<Context>& devices, bool deterministic);

// Arrays that training keeps for each parameter.
KeptStates StatesOf(const config::TrainConfig& train);

}  // namespace mxtrain::commands
