// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is saved when a run diverges, and how its failing step is repeated to find where the first
// non-finite value arose.
//
// A bundle is a folder: bundle.json (step, threads, message), config.yaml, batch.txt (the examples
// of the failing batch, one per line) and `checkpoint`, the last save before, if any. Data and
// plug-ins are not copied.
#include <string>

#include "app/commands/command.h"
#include "app/report/run_folder.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// Writes RUN/diverged-STEP and returns its path. Throws kFileSystem.
std::string WriteBundle(const report::RunFolder& run, const DivergedError& error, int threads);

// The first non-finite value, in the order in which a step computes.
struct NonFinite {
  int64_t step = 0;  // counted from 1
  // "conv1_output", "backward of conv1, gradient 1"; empty when every value was finite.
  std::string tensor;
  int64_t nans = 0, infinities = 0, size = 0;
  double largest_before = 0;  // magnitude of the values of the tensor computed before it

  std::string Text() const;
};

// Trains from the bundle's checkpoint to its step and inspects everything that this step computes.
NonFinite Replay(const std::string& bundle, const CommonFlags& flags, console::Console& console);

}  // namespace mxtrain::commands
