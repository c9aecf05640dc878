#pragma once
// The exit codes, explained: what `mxtrain help CODE` and the man pages say of each.
#include <span>
#include <string>

namespace mxtrain::commands {

struct ExitCode {
  int code;
  const char* name;     // of the class of errors: "configuration"
  const char* meaning;  // a phrase
  const char* causes;   // the commonest, a line each
  const char* remedy;   // what to do, in sentences
};

std::span<const ExitCode> ExitCodes();
// By number ("3"), or by name or its beginning ("configuration", "conf"); null when there is none.
const ExitCode* FindExitCode(const std::string& word);

}  // namespace mxtrain::commands
