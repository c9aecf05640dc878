#pragma once
// How a command computes a net: the modes that its configuration, or that of the run which made it, names.
#include <string>

#include "app/commands/command.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain::commands {

// `math`, `amp`: of a configuration's `train`.
ComputeModes ModesOf(const std::string& math, const std::string& amp, bool deterministic);

// Those in which the model's run trained and validated, so that `eval` and `infer` give its numbers. A mixed precision for which the device
// is not made is left out, which is said.
ComputeModes ModesOf(const Model& model, const CommonFlags& flags, Runtime& runtime, Context device, report::Console& console);

}  // namespace mxtrain::commands
