#pragma once
// A command of the program: a file each. main.cc makes them all, lets them declare their arguments and runs the one that was named.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/arguments.h"
#include "app/report/console.h"

namespace mxtrain::commands {

// Flags that every command takes.
struct CommonFlags {
  bool json = false;  // only JSON on stdout
  bool quiet = false, verbose = false, deterministic = false;
  std::string device = "auto", engine = "threaded", color = "auto", progress = "auto";
  int threads = 0;
  std::optional<uint64_t> seed;
  std::vector<std::string> plugins;
};

class Command {
 public:
  virtual ~Command() = default;
  // Adds itself, with its arguments.
  virtual void Declare(CommandLine& line) = 0;
  // Whether it works on arrays; the others begin without what threads of computation need.
  virtual bool Computes() const { return true; }
  // Returns the exit code; throws Error.
  virtual int Run(const CommonFlags& flags, report::Console& console) = 0;
};

// CONFIG [key=value ...] -c FILE: what most commands begin with.
struct ConfigArguments {
  std::string file;
  std::vector<std::string> overrides, more_files;
  void Declare(Arguments& arguments, bool required = true);
};

std::unique_ptr<Command> MakeTrain(std::string command_line);
std::unique_ptr<Command> MakeEval();
std::unique_ptr<Command> MakeInfer();
std::unique_ptr<Command> MakeCheck();
std::unique_ptr<Command> MakePlan();
std::unique_ptr<Command> MakeBench();
std::unique_ptr<Command> MakeOps();
std::unique_ptr<Command> MakeDevices();
std::unique_ptr<Command> MakeSynth();
std::unique_ptr<Command> MakeInit();
std::unique_ptr<Command> MakeExport();
std::unique_ptr<Command> MakeVerifyResume();
std::unique_ptr<Command> MakeReplay();
std::unique_ptr<Command> MakeHelp(const CommandLine& line);        // `line` must live as long as the command
std::unique_ptr<Command> MakeCompletion(const CommandLine& line);  // likewise
std::unique_ptr<Command> MakeRuns();
std::unique_ptr<Command> MakeDiff();
std::unique_ptr<Command> MakeSweep();
std::unique_ptr<Command> MakeLrFind();

// What the program is, what it was built with and the CPU that it runs on: "mxtrain", "libraries", "compiler", "cpu".
std::vector<std::pair<std::string, std::string>> BuildFacts();
// The same for people: "mxtrain 0.1.0" and, in lines of their own, the rest.
std::string VersionText();

// Set by INT, TERM (1) and USR1 (2: save and go on); the signal that ended the run.
std::atomic<int>& StopFlag();
int StopSignal();
// From now on INT and TERM ask for a stop; a second one leaves at once. USR1 asks for a save.
void CatchSignals();

}  // namespace mxtrain::commands
