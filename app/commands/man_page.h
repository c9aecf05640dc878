// SPDX-License-Identifier: Apache-2.0
#pragma once
// Man pages, generated from the declarations of the command line.
#include <string>

#include "app/commands/arguments.h"

namespace mxtrain::commands {

// The page of a command ("mxtrain-train"), or of the program itself for "", in roff with the macros
// of man(7). Throws kUsage for an unknown command.
std::string ManPage(const CommandLine& line, const std::string& command);

}  // namespace mxtrain::commands
