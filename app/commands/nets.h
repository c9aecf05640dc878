// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command `nets`, which only main.cc creates.
#include <memory>

#include "app/commands/command.h"

namespace mxtrain::commands {

std::unique_ptr<Command> MakeNets();

}  // namespace mxtrain::commands
