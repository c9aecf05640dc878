// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compute modes of a net, from its configuration or that of its run.
#include <map>
#include <string>

#include "app/session/request.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain::session {

// `math`, `amp`: of a configuration's `train`.
ComputeModes ModesOf(const std::string& math, const std::string& amp, bool deterministic);

// The math that a configuration's words mean on a device: `fast` includes float32 factors rounded
// to 10 bits of fraction where a GPU has units for that, from compute capability 8.0 on.
Math MathOn(Math math, Runtime& runtime, Context device);

// What ModesOf reads of a model's configuration, as a configuration of its own; "" for the
// defaults.
std::string ModesInConfig(const std::string& config);

// The modes in which the model's run trained and validated, so that `eval` and `infer` reproduce
// its results, with groups of layers on the devices of `places`. Mixed precision that the devices
// do not support is skipped, with a message. Throws kDevice for a device that is not there.
ComputeModes ModesOf(const Model& model, const ComputeOptions& flags, Runtime& runtime,
                     Context device, const std::map<std::string, Context>& places,
                     const Logger& log);

}  // namespace mxtrain::session
