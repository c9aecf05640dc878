// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shell completion scripts that contain all words: completion runs no program.
#include <string>
#include <vector>

#include "app/commands/arguments.h"

namespace mxtrain::commands {

// A key of the configuration as it may be assigned on the command line.
struct KeyWord {
  std::string path, help;
  std::vector<std::string> values;  // the words that it takes; empty: anything
};

// What is completed beside commands and flags.
struct CompletionWords {
  std::vector<KeyWord> keys;
  std::vector<std::string> operators;
  std::vector<std::string> topics;  // of `mxtrain help`
};

// The keys of the table, with those of optimizers, schedules and initializers; sorted.
std::vector<KeyWord> ConfigurationKeys();

std::string BashCompletion(const CommandLine& line, const CompletionWords& words);
std::string ZshCompletion(const CommandLine& line, const CompletionWords& words);
std::string FishCompletion(const CommandLine& line, const CompletionWords& words);

}  // namespace mxtrain::commands
