// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exit codes and their explanations in `mxtrain help CODE` and the man pages.
#include <exception>
#include <span>
#include <string>

namespace mxtrain::commands {

struct ExitCode {
  int code;
  const char* name;     // of the class of errors: "configuration"
  const char* meaning;  // a phrase
  const char* causes;   // common causes, one per line
  const char* remedy;   // what to do, in sentences
};

std::span<const ExitCode> ExitCodes();
// That of a command which ends by an exception.
int ExitCodeOf(const std::exception_ptr& error);
// By number ("3"), or by name or its prefix ("configuration", "conf"); null if there is none.
const ExitCode* FindExitCode(const std::string& word);

}  // namespace mxtrain::commands
