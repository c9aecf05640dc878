// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compute modes of a net, from its configuration or that of its run.
#include <string>

#include "app/commands/command.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain::commands {

// `math`, `amp`: of a configuration's `train`.
ComputeModes ModesOf(const std::string& math, const std::string& amp, bool deterministic);

// What ModesOf reads of a model's configuration, as a configuration of its own; "" for the
// defaults.
std::string ModesInConfig(const std::string& config);

// The modes in which the model's run trained and validated, so that `eval` and `infer` reproduce
// its results. Mixed precision that the device does not support is skipped, with a message.
ComputeModes ModesOf(const Model& model, const CommonFlags& flags, Runtime& runtime, Context device,
                     report::Console& console);

}  // namespace mxtrain::commands
