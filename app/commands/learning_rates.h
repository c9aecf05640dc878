// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which parameters learn at which multiple of the learning rate: for `train`, `check` and `plan`.
#include <string>
#include <vector>

#include "app/console/console.h"
#include "app/session/session.h"

namespace mxtrain::commands {

// Parameters that follow each other in the net and have one multiplier.
struct RateGroup {
  std::string layers;  // "fc", "stem to stage2_unit1"
  double multiplier = 1;
  bool frozen_first = false;  // in the first train.freeze.epochs
  size_t parameters = 0;
};

// From the input to the head.
std::vector<RateGroup> RateGroupsOf(const session::Session& session);

// One line for each group; empty if all parameters learn alike.
std::vector<std::string> RateLines(const session::Session& session);

// The first of these lines as messages.
void TellRates(const session::Session& session, console::Console& console);

}  // namespace mxtrain::commands
