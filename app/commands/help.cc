// SPDX-License-Identifier: Apache-2.0
// mxtrain help [TOPIC]: explains exit codes, commands, configuration keys, nets and data files;
// writes man pages.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "app/commands/command_list.h"
#include "app/commands/exit_codes.h"
#include "app/commands/help_topics.h"
#include "app/commands/man_page.h"
#include "app/commands/ops.h"
#include "app/config/key_help.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/report/text_width.h"
#include "app/session/open_runtime.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::commands {
namespace {

Json ToJson(const ExitCode& code) {
  return {{"code", code.code},
          {"name", code.name},
          {"meaning", code.meaning},
          {"causes", code.causes},
          {"remedy", code.remedy}};
}

// Fits the terminal.
void Print(const std::string& text) {
  std::cout << report::Fitted(text, report::HelpColumns());
}

class Help final : public Command {
 public:
  explicit Help(const CommandLine& line) : line_(line) {}

  bool Computes() const override { return false; }

  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("help", "explain a command, a configuration key or an exit code");
    arguments
        .Option("topic", &topic_,
                "an exit code (3) or its name (configuration), a command, a configuration key or "
                "one of its choices (train.optimizer, transforms, adam), `keys` for all keys, an "
                "operator (Convolution), or a topic (net, blocks, repeat, expressions, list, csv); "
                "default: list the commands, topics and exit codes")
        .Takes("TOPIC");
    arguments.Flag("--man", &man_,
                   "print the man page of the command, or of the program, for `man -l -`");
    arguments
        .Option("--man-dir", &man_dir_,
                "write the man pages of the program and all commands into this folder")
        .Takes("DIR");
    arguments.Flag("--overwrite", &overwrite_, "replace existing man pages in --man-dir");
    arguments.Examples(
        "  mxtrain help\n  mxtrain help 3\n  mxtrain help train.optimizer\n  mxtrain help net\n  "
        "mxtrain help memory\n  mxtrain help --man train | man -l -");
  }

  int Run(const CommonFlags& flags, console::Console&) override {
    if (!man_dir_.empty()) {
      WriteManPages();
    } else if (man_) {
      std::cout << ManPage(line_, topic_);
    } else if (topic_.empty()) {
      flags.json ? ListJson() : List();
    } else if (IsCommand()) {
      Print(line_.Help(topic_));
    } else if (const HelpTopic* page = FindHelpTopic(topic_)) {
      flags.json ? static_cast<void>(std::cout << report::JsonText({{"topic", page->names[0]},
                                                                    {"title", page->title},
                                                                    {"text", page->text}})
                                               << "\n")
                 : Show(*page);
    } else if (const std::string keys = config::HelpOnKey(topic_); !keys.empty() && !flags.json) {
      Print(keys);
      if (const ExitCode* code = FindExitCode(topic_)) {  // "data" is both
        std::cout << "\n";
        Explain(*code);
      }
    } else if (const ExitCode* code = FindExitCode(topic_)) {
      flags.json ? static_cast<void>(std::cout << report::JsonText(ToJson(*code)) << "\n")
                 : Explain(*code);
    } else {
      ShowOperator(flags);
    }
    return 0;
  }

 private:
  void List() const {
    std::string text = "Commands; `mxtrain help COMMAND` explains one:\n";
    for (const CommandInfo& command : line_.commands())
      text += format("  {:<13}  {}\n", command.name, command.description);
    text += "\nTopics:\n";
    for (const HelpTopic& topic : HelpTopics())
      text += format("  {:<24}  {}\n", "mxtrain help " + topic.names[0], topic.title);
    text += "\nExit codes; `mxtrain help CODE` explains one:\n";
    for (const ExitCode& code : ExitCodes())
      text += format("  {:>3}  {:<13}  {}\n", code.code, code.name, code.meaning);
    Print(text +
          "\n`mxtrain help KEY` explains a configuration key, `mxtrain help keys` lists them; "
          "`mxtrain ops` is the operator reference.\n");
  }

  // With the keys of that name.
  static void Show(const HelpTopic& topic) {
    std::cout << format("{}: {}\n\n{}", topic.names[0], topic.title,
                        report::Refilled(topic.text, report::HelpColumns()));
    if (const std::string keys = config::HelpOnKey(topic.names[0]); !keys.empty())
      Print("\nKeys:\n" + keys);
  }

  static void ListJson() {
    Json all = Json::array();
    for (const ExitCode& code : ExitCodes()) all.push_back(ToJson(code));
    std::cout << report::JsonText(all, 2) << "\n";
  }

  static void Explain(const ExitCode& code) {
    std::string text = format("{} ({}): {}\n", code.code, code.name, code.meaning);
    if (*code.causes) text += "\nCommon causes:\n";
    const std::string causes = code.causes;
    for (size_t at = 0; at < causes.size();) {
      const size_t end = std::min(causes.find('\n', at), causes.size());
      text += "  - " + causes.substr(at, end - at) + "\n";
      at = end + 1;
    }
    Print(text + "\nWhat to do:\n");
    constexpr size_t kIndent = 2;
    std::istringstream remedy(report::Refilled(code.remedy, report::HelpColumns() - kIndent));
    for (std::string line; std::getline(remedy, line);) std::cout << "  " << line << "\n";
  }

  bool IsCommand() const {
    return std::any_of(line_.commands().begin(), line_.commands().end(),
                       [this](const CommandInfo& command) { return command.name == topic_; });
  }

  // As `mxtrain ops` does. Throws if there is none of this name.
  void ShowOperator(const CommonFlags& flags) const {
    const auto registry = session::MakeRegistry(flags.plugins, DeviceType::kGPU);
    if (!registry->Has(topic_)) ThrowUnknown(*registry);
    if (flags.json) {
      std::cout << report::JsonText(JsonOfOperator(*registry, topic_), 2) << "\n";
    } else {
      Print(TextOfOperator(*registry, topic_));
    }
  }

  [[noreturn]] void ThrowUnknown(const OperatorRegistry& registry) const {
    std::vector<std::string> known = session::PublicOperators(registry);
    // Layers only: short names of functions resemble too much.
    std::erase_if(known, [](const std::string& name) {
      return !std::isupper(static_cast<unsigned char>(name[0]));
    });
    for (const ExitCode& code : ExitCodes()) known.emplace_back(code.name);
    for (const CommandInfo& command : line_.commands()) known.push_back(command.name);
    for (const HelpTopic& topic : HelpTopics())
      known.insert(known.end(), topic.names.begin(), topic.names.end());
    for (std::string& topic : config::KeyTopics()) known.push_back(std::move(topic));
    // No number resembles another code.
    const bool number = topic_.find_first_not_of("0123456789") == std::string::npos;
    const std::string guess = number ? "" : DidYouMean(topic_, known);
    Throw(ErrorKind::kUsage, "unknown command, key, operator or exit code '{}'{}", topic_,
          guess.empty() ? "; `mxtrain help` lists the codes and topics, `mxtrain help keys` the "
                          "keys, `mxtrain ops` the operators"
                        : guess);
  }

  void WriteManPages() const {
    const auto file = [this](const std::string& name) {
      return (std::filesystem::path(man_dir_) / (name + ".1")).string();
    };
    std::map<std::string, std::string> pages = {{file("mxtrain"), ""}};  // the command of each file
    for (const CommandInfo& command : line_.commands())
      pages.emplace(file("mxtrain-" + command.name), command.name);
    for (const auto& [path, command] : pages) report::RequireFree(std::array{path}, {}, overwrite_);
    MakeFolders(man_dir_);
    for (const auto& [path, command] : pages) WriteFileAtomically(path, ManPage(line_, command));
  }

  const CommandLine& line_;
  std::string topic_, man_dir_;
  bool man_ = false, overwrite_ = false;
};

}  // namespace

MXTRAIN_COMMAND(help, list) {
  list.Add(HelpGroup::kReference, 50, std::make_unique<Help>(list.program().line));
}

}  // namespace mxtrain::commands
