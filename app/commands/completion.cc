// SPDX-License-Identifier: Apache-2.0
// mxtrain completion SHELL: a completion script on stdout.
#include <iostream>

#include "app/commands/command_list.h"
#include "app/commands/completion_scripts.h"
#include "app/commands/exit_codes.h"
#include "app/session/open_runtime.h"

namespace mxtrain::commands {
namespace {

class Completion final : public Command {
 public:
  explicit Completion(const CommandLine& line) : line_(line) {}

  bool Computes() const override { return false; }

  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add(
        "completion", "print a shell completion script for commands, flags, keys and operators");
    arguments.Option("shell", &shell_, "bash, zsh or fish")
        .Required()
        .OneOf({"bash", "zsh", "fish"});
    arguments.Examples(
        "  source <(mxtrain completion bash)\n  mxtrain completion zsh > ~/.zfunc/_mxtrain\n"
        "  mxtrain completion fish > ~/.config/fish/completions/mxtrain.fish");
  }

  int Run(const CommonFlags& flags, console::Console&) override {
    const CompletionWords words = {ConfigurationKeys(),
                                   session::PublicOperators(*session::MakeRegistry(flags.plugins)),
                                   Topics()};
    std::cout << (shell_ == "bash"  ? BashCompletion(line_, words)
                  : shell_ == "zsh" ? ZshCompletion(line_, words)
                                    : FishCompletion(line_, words));
    return 0;
  }

 private:
  std::vector<std::string> Topics() const {
    std::vector<std::string> topics;
    for (const ExitCode& code : ExitCodes()) topics.push_back(std::to_string(code.code));
    for (const CommandInfo& command : line_.commands()) topics.push_back(command.name);
    return topics;
  }

  const CommandLine& line_;
  std::string shell_;
};

}  // namespace

MXTRAIN_COMMAND(completion, list) {
  list.Add(HelpGroup::kReference, 60, std::make_unique<Completion>(list.program().line));
}

}  // namespace mxtrain::commands
