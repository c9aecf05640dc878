// SPDX-License-Identifier: Apache-2.0
#pragma once
// The `train` section of a configuration as options of the trainer.
#include <vector>

#include "app/config/config.h"
#include "app/config/net.h"
#include "app/session/batch_fit.h"
#include "mxtrain/train/bind_request.h"
#include "mxtrain/train/layer_groups.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::session {

// Those of train.metrics; none if that is not given.
std::vector<MetricSpec> MetricsOf(const config::TrainConfig& train);

// The parameters of a net in the steps of train.lr_decay (train/layer_groups.h).
std::vector<LayerGroup> LayerGroupsOf(const config::Net& net);

// train.lora; without layers if there is none.
LoraOptions LoraOf(const config::TrainConfig& train);
// The names of the parameters that train.freeze freezes, in the whole run or in its first epochs,
// or train.lora.
std::vector<std::string> FrozenOf(const config::TrainConfig& train, const config::Net& net);

// Whether batch norms that are frozen use their stored statistics.
bool FixesStatistics(const config::TrainConfig& train);

// Those of train.lr_mult; with train.lr_decay each parameter by its name; then those that are
// frozen in the whole run, which take precedence.
LrPatterns LrPatternsOf(const config::TrainConfig& train, const config::Net& net);

// The devices of the workers: logical workers on one device, or several devices. `devices`: those
// of --device. Throws kConfig for several of them together with several workers on one.
std::vector<Context> WorkersOf(const config::TrainConfig& train,
                               const std::vector<Context>& devices);

// How nets are bound. Throws as WorkersOf.
BindOptions BindOptionsOf(const config::TrainConfig& train, const config::Net& net,
                          const std::vector<Context>& devices, bool deterministic);

// Everything but TrainOptions::model and features. Throws as WorkersOf.
TrainOptions TrainOptionsOf(const config::TrainConfig& train, const config::Net& net,
                            const std::vector<Context>& devices, bool deterministic);

// Arrays that training keeps for each parameter.
KeptStates StatesOf(const config::TrainConfig& train);

}  // namespace mxtrain::session
