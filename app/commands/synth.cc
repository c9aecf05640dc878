// SPDX-License-Identifier: Apache-2.0
// mxtrain synth DIR
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/report/output.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr int kMinSize = 24, kMaxSize = 1024;
constexpr int64_t kMaxCount = 1'000'000;
constexpr const char* kUnfinished = ".unfinished";

// The tasks that make examples.
std::vector<std::string> SynthTasks() {
  std::vector<std::string> names;
  for (const tasks::TaskKind& kind : tasks::Tasks().kinds()) {
    if (kind.synth) names.push_back(kind.name);
  }
  return names;
}

class Synth final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("synth", "generate a small data set; by default of shapes, one folder per class");
    arguments.Option("dir", &dir_, "folder to create; must not exist, or be empty")
        .Required()
        .Takes("DIR");
    arguments.Option("--task", &task_, "what is to be learned from it")
        .OneOf(SynthTasks())
        .ShowsDefault();
    arguments.Option("--count", &count_, "total number of examples")
        .Within(int64_t{4}, kMaxCount)
        .ShowsDefault();
    arguments
        .Option("--classes", &classes_,
                "number of classes; default: 6, of segmentation 4 with the background")
        .Positive();
    arguments.Option("--size", &size_, "size in pixels; sides are between 3/4 and 3/2 of it")
        .Within(kMinSize, kMaxSize)
        .ShowsDefault();
    arguments.Option("--val", &val_, "fraction of the examples in val/")
        .Within(0.0, 0.9)
        .ShowsDefault();
    arguments.Examples(
        "  mxtrain synth data/shapes\n  mxtrain synth data/shapes --count 800 --classes 3 --size "
        "96 --seed 7");
  }

  int Run(const CommonFlags& flags, console::Console&) override {
    if (fs::exists(dir_) && !fs::is_directory(dir_))
      Throw(ErrorKind::kFileSystem, "{} is a file; give a folder that does not exist yet", dir_);
    if (fs::exists(dir_) && !fs::is_empty(dir_)) {
      Throw(ErrorKind::kFileSystem, "{} is not empty; choose another folder, or remove it first",
            dir_);
    }
    // Created under a temporary name, so that a folder with this name is complete.
    fs::path target = fs::path(dir_).lexically_normal();
    if (!target.has_filename()) target = target.parent_path();  // a slash at the end
    const fs::path made = target.string() + kUnfinished;
    CatchSignals();
    const tasks::SynthRequest request{
        made.string(), count_, classes_, size_, val_, flags.seed.value_or(0), [] {
          return StopFlag() == 1;
        }};
    tasks::SynthResult result;
    try {
      fs::remove_all(made);
      result = tasks::Tasks().Find(task_)->synth(request);
      if (StopFlag() == 1) {
        fs::remove_all(made);
        return 128 + StopSignal();
      }
      fs::rename(made, target);
    } catch (const fs::filesystem_error& e) {
      Throw(ErrorKind::kFileSystem, "cannot create {}: {}", dir_, e.code().message());
    }
    Report(flags, result);
    return 0;
  }

 private:
  void Report(const CommonFlags& flags, const tasks::SynthResult& made) const {
    if (flags.json) {
      Json json = {{"folder", dir_}};
      if (!made.classes.empty()) json["classes"] = made.classes;
      json.update({{"train", made.train}, {"val", made.val}});
      std::cout << report::JsonText(json) << std::endl;
    } else {
      std::cout << format(
          "{}: {} in train, {} in val{}\n", dir_, Counted(made.train, "image"), made.val,
          made.classes.empty() ? "" : format("; classes {}", join(made.classes, ", ")));
    }
  }

  std::string dir_, task_ = "classification";
  int64_t count_ = 4000;
  int classes_ = 0, size_ = 64;
  double val_ = 0.2;
};

}  // namespace

MXTRAIN_COMMAND(synth, list) {
  list.Add(HelpGroup::kReference, 40, std::make_unique<Synth>());
}

}  // namespace mxtrain::commands
