// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command line: commands with their positional arguments and flags. Each is declared once;
// parsing, help, man pages, completion and parse errors derive from the declaration. Only
// arguments.cc includes CLI11, which adds seconds to compile time.
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mxtrain::commands {

// The declarations, for help, man pages and completion.
struct ArgumentInfo {
  std::vector<std::string> names;  // "-q", "--quiet"; of a positional argument one, without dashes
  std::string help;
  std::string takes;  // what help calls the value: FILE; empty for a flag
  std::vector<std::string> choices;
  std::string default_text;  // if help shows it
  // The range of a whole number, at first that of the target; both 0 for anything else.
  int64_t least = 0;
  uint64_t most = 0;
  bool required = false, repeats = false;
  bool whole_number() const { return most > 0; }
  bool positional() const { return !names[0].starts_with("-"); }
};

struct CommandInfo {
  std::string name, description, examples;
  std::deque<ArgumentInfo> arguments;  // in order of declaration; references stay valid as it grows
};

// A declared argument. The calls restrict it and return it, for chaining.
class Argument {
 public:
  Argument(CLI::Option* option, ArgumentInfo* info) : option_(option), info_(info) {}
  Argument& Required();
  Argument& Repeats();                       // may be repeated, with one value each
  Argument& ShowsDefault();                  // help shows the current value of the target
  Argument& Takes(const std::string& what);  // what help calls the value: FILE
  Argument& OneOf(const std::vector<std::string>& words);
  template <typename Number>  // int, int64_t, double
  Argument& Within(Number least, Number most);
  Argument& Positive();
  Argument& NotNegative();

 private:
  CLI::Option* option_;
  ArgumentInfo* info_;
};

// The arguments of one command. Targets are filled by CommandLine::Parse and must live until then.
class Arguments {
 public:
  Arguments(CLI::App* app, CommandInfo* info) : app_(app), info_(info) {}
  // Takes no value. `names`: "--json" or "-q,--quiet".
  Argument Flag(const std::string& names, bool* target, const std::string& help);
  // Takes a value; without dashes a positional argument; a vector takes all remaining ones.
  // T: std::string, int, int64_t, double, std::optional of double, int64_t or uint64_t,
  // std::vector<std::string>.
  template <typename T>
  Argument Option(const std::string& names, T* target, const std::string& help);
  void Examples(const std::string& lines);  // shown at the start of help

 private:
  ArgumentInfo* Note(const std::string& names, const std::string& help, const std::string& takes);

  CLI::App* app_;
  CommandInfo* info_;
};

class CommandLine {
 public:
  // `version` is called for --version.
  CommandLine(const std::string& program, const std::string& description,
              std::function<std::string()> version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Arguments common();  // accepted by every command, before or after its name
  Arguments Add(const std::string& command, const std::string& description);

  // Fills the targets. Returns the index of the given command, in the order of Add; or -1 if there
  // is nothing to run: help or the version was printed on stdout, or a parse error on stderr (with
  // the nearest valid word); `exit_code` is then set.
  int Parse(int argc, char** argv, int* exit_code);

  // The declarations so far.
  const CommandInfo& program() const { return program_; }  // with the common arguments
  const std::deque<CommandInfo>& commands() const { return infos_; }
  // The output of `COMMAND --help`; of the program itself for "". Throws kUsage for an unknown
  // command.
  std::string Help(const std::string& command) const;
  std::string Version() const { return version_(); }

 private:
  const std::function<std::string()> version_;
  std::unique_ptr<CLI::App> app_;
  CommandInfo program_;
  std::vector<CLI::App*> commands_;
  std::deque<CommandInfo> infos_;  // of the commands
};

}  // namespace mxtrain::commands
