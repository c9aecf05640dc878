// SPDX-License-Identifier: Apache-2.0
#pragma once
// A command of the program, one per file, which adds it to the list of commands (command_list.h).
// main.cc lets all declare their arguments and runs the given one.
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/arguments.h"
#include "app/console/console.h"
#include "app/session/request.h"

namespace mxtrain::commands {

// Flags that every command takes.
struct CommonFlags : session::ComputeOptions {
  bool json = false;  // only JSON on stdout
  bool quiet = false, verbose = false;
  std::string color = "auto", progress = "auto";
  std::string log_level, log_size = "16MiB";
};

class Command {
 public:
  virtual ~Command() = default;
  // Adds itself, with its arguments.
  virtual void Declare(CommandLine& line) = 0;
  // Whether it computes on arrays; other commands skip the setup of compute threads.
  virtual bool Computes() const { return true; }
  // Whether the processes that a launcher (mpirun, srun) started may share the work.
  virtual bool RunsInRanks() const { return false; }
  // Returns the exit code; throws Error.
  virtual int Run(const CommonFlags& flags, console::Console& console) = 0;
};

// CONFIG [key=value ...] -c FILE: arguments of most commands.
struct ConfigArguments : session::ConfigFiles {
  void Declare(Arguments& arguments, bool required = true);
  std::vector<std::string> Files() const;  // of the configuration, as they were given
};
// --place of commands that bind a net; may be repeated.
void DeclarePlaces(Arguments& arguments, std::vector<std::string>* places);

// Version, build and CPU: "mxtrain", "libraries", "compiler", "cpu".
std::vector<std::pair<std::string, std::string>> BuildFacts();
// The same as text: "mxtrain 0.1.0" (of another commit than the release's: "mxtrain
// 0.1.0+12.g3245611"), then one line for each of the others.
std::string VersionText();

// Set by INT, TERM (1) and USR1 (2: save and continue); the signal that ended the run.
std::atomic<int>& StopFlag();
int StopSignal();
// From now on, INT and TERM request a stop; a second one exits at once. USR1 requests a save.
void CatchSignals();

}  // namespace mxtrain::commands
