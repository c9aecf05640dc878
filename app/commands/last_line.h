// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the program says when a second signal ends it at once (CatchSignals, command.h).
#include <string>

namespace mxtrain::commands {

// From now on this line, on stderr. Kept for good, since a signal may come at any time.
void SayWhenKilled(std::string line);

}  // namespace mxtrain::commands
