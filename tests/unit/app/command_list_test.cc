// SPDX-License-Identifier: Apache-2.0
#include "app/commands/command_list.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "app/commands/distributed_run.h"
#include "mxtrain/base/file.h"
#include "tests/support/build_paths.h"

namespace mxtrain::commands {
namespace {

// A list, and what it refers to.
struct Program {
  std::atomic<bool> leaving{false};
  DistributedRun distributed{&leaving};
  CommandLine line{"mxtrain", "", [] { return std::string(); }};
  CommandList list{{"mxtrain", line, distributed}};

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const CommandInfo& command : line.commands()) names.push_back(command.name);
    return names;
  }
};

class Named final : public Command {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  void Declare(CommandLine& line) override { line.Add(name_, "a command of a test"); }
  int Run(const CommonFlags&, console::Console&) override { return static_cast<int>(name_.size()); }

 private:
  std::string name_;
};

TEST_CASE("commands stand by group, then by position, then as they were added") {
  Program program;
  const auto add = [&](HelpGroup group, int position, const char* name) {
    program.list.Add(group, position, std::make_unique<Named>(name));
  };
  add(HelpGroup::kRuns, 10, "seventh");
  add(HelpGroup::kModel, 20, "second");
  add(HelpGroup::kChoices, 15, "4th");
  add(HelpGroup::kChoices, 20, "fifth");
  add(HelpGroup::kModel, 10, "one");
  add(HelpGroup::kChoices, 20, "the-sixth");
  add(HelpGroup::kModel, 20, "third-one");
  program.list.Declare(program.line);
  CHECK(program.Names() == std::vector<std::string>{"one", "second", "third-one", "4th", "fifth",
                                                    "the-sixth", "seventh"});
  std::string words[] = {"mxtrain", "4th"};
  char* argv[] = {words[0].data(), words[1].data()};
  int exit_code = 0;
  const int index = program.line.Parse(2, argv, &exit_code);
  REQUIRE(index == 3);
  console::Console console({});
  CHECK(program.list[3].Run({}, console) == 3);
}

TEST_CASE("the program's commands stand in the order of their use") {
  Program program;
  RegisterCommands(program.list);
  program.list.Declare(program.line);
  // Those that were there when this was written; others may stand between.
  const std::vector<std::string> order = {
      "init",   "check", "train",   "eval",    "infer", "export", "import",
      "plan",   "bench", "lr-find", "sweep",   "runs",  "diff",   "verify-resume",
      "replay", "nets",  "ops",     "devices", "synth", "help",   "completion"};
  std::vector<std::string> listed = program.Names();
  std::erase_if(listed,
                [&](const std::string& name) { return std::ranges::count(order, name) == 0; });
  CHECK(listed == order);
}

// A misplaced MXTRAIN_COMMAND would be missed by the build.
TEST_CASE("every file with a command registers one of the file's name") {
  Program program;
  RegisterCommands(program.list);
  program.list.Declare(program.line);
  std::set<std::string> files, listed;
  for (std::string name : program.Names()) {
    std::ranges::replace(name, '-', '_');
    CHECK_MESSAGE(listed.insert(name).second, name << " is there twice");
  }
  for (const auto& entry :
       std::filesystem::directory_iterator(test::SourceDir() / "app" / "commands")) {
    if (entry.path().extension() == ".cc" &&
        ReadFile(entry.path().string()).find(": public Command {") != std::string::npos)
      files.insert(entry.path().stem().string());
  }
  CHECK(files == listed);
  CHECK(program.list.size() == listed.size());
}

}  // namespace
}  // namespace mxtrain::commands
