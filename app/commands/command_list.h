// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands of the program. Each adds itself, in its own file; main.cc names none.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/command.h"

namespace mxtrain::commands {

class DistributedRun;  // distributed_run.h

// What the program has for the commands that need it at their creation. What is referred to
// outlives them.
struct ProgramFacts {
  std::string command_line;  // as it was typed, with the program's name
  const CommandLine& line;   // where all commands are declared
  DistributedRun& distributed;
};

// The groups in which `--help` lists the commands, in this order.
enum class HelpGroup : uint8_t {
  kModel,      // from a folder of images to a model in use
  kChoices,    // what is found out before the run that counts, or between two
  kRuns,       // runs and what they may leave
  kReference,  // what there is: nets, operators, devices; help
};

class CommandList {
 public:
  explicit CommandList(ProgramFacts program) : program_(std::move(program)) {}

  // The place in help: a group, and a position in it between those of the commands that a user
  // needs before and after this one. Positions have gaps of 10. Commands of the same one stand in
  // the order in which they are added, which is that of their names.
  void Add(HelpGroup group, int position, std::unique_ptr<Command> command);
  const ProgramFacts& program() const { return program_; }

  // Lets each declare itself, in the order of help. CommandLine::Parse then returns its index here.
  void Declare(CommandLine& line);
  Command& operator[](size_t index) { return *entries_[index].command; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::pair<HelpGroup, int> place;
    std::unique_ptr<Command> command;
  };

  const ProgramFacts program_;
  std::vector<Entry> entries_;  // by place
};

// Adds every command, in the order of their ids. Generated from app/commands/.
void RegisterCommands(CommandList& list);

// At the end of the file of a command, whose name is the id:
//
//   MXTRAIN_COMMAND(verify_resume, list) {
//     list.Add(HelpGroup::kRuns, 30, std::make_unique<VerifyResume>());
//   }
//
// The build finds it at the beginning of a line and generates the list of calls.
#define MXTRAIN_COMMAND(id, list)                                          \
  extern "C" void mxtrain_command_##id(::mxtrain::commands::CommandList&); \
  extern "C" void mxtrain_command_##id(::mxtrain::commands::CommandList& list)

}  // namespace mxtrain::commands
