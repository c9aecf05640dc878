#pragma once
// The words of the command line: commands with their positional arguments and flags. Each is declared once; parsing, help, man pages,
// completion and the message for what does not parse come from the declaration. CLI11 stands behind, in arguments.cc alone: a file that includes it takes seconds
// longer to compile.
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

// What was declared, for whoever describes it.
struct ArgumentInfo {
  std::vector<std::string> names;  // "-q", "--quiet"; of a positional argument one, without dashes
  std::string help;
  std::string takes;  // how help calls the value: FILE; empty for a flag
  std::vector<std::string> choices;
  std::string default_text;  // where help names it
  bool required = false, repeats = false;
  bool positional() const { return !names[0].starts_with("-"); }
};

struct CommandInfo {
  std::string name, description, examples;
  std::deque<ArgumentInfo> arguments;  // in the order of their declaration; stays where it is as it grows
};

// An argument that was declared. The calls narrow it and return it, so that they chain.
class Argument {
 public:
  Argument(CLI::Option* option, ArgumentInfo* info) : option_(option), info_(info) {}
  Argument& Required();
  Argument& Repeats();                       // may be given several times, with one value each
  Argument& ShowsDefault();                  // help names the value that the target holds now
  Argument& Takes(const std::string& what);  // how help calls the value: FILE
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
  // Set by its mere presence. `names`: "--json" or "-q,--quiet".
  Argument Flag(const std::string& names, bool* target, const std::string& help);
  // With a value; without dashes a positional argument, of which a vector takes all that are left.
  // T: std::string, int, int64_t, double, std::optional of double, int64_t or uint64_t, std::vector<std::string>.
  template <typename T>
  Argument Option(const std::string& names, T* target, const std::string& help);
  void Examples(const std::string& lines);  // help begins with them

 private:
  ArgumentInfo* Note(const std::string& names, const std::string& help, const std::string& takes);

  CLI::App* app_;
  CommandInfo* info_;
};

class CommandLine {
 public:
  // `version` is asked when --version is given.
  CommandLine(const std::string& program, const std::string& description, std::function<std::string()> version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Arguments common();  // taken by every command, before or after its name
  Arguments Add(const std::string& command, const std::string& description);

  // Fills the targets. Returns the number of the command that was named, in the order of Add; or -1 where there is nothing to run: help or
  // the version was asked for (on stdout), or something does not parse (said on stderr, with the nearest word that would); then `exit_code`
  // is set.
  int Parse(int argc, char** argv, int* exit_code);

  // What was declared up to now.
  const CommandInfo& program() const { return program_; }  // with the common arguments
  const std::deque<CommandInfo>& commands() const { return infos_; }
  // What `COMMAND --help` prints; of the program itself for "". Throws kUsage for a command that there is not.
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
