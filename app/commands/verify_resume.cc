// SPDX-License-Identifier: Apache-2.0
// mxtrain verify-resume CONFIG: checks that a stopped and resumed run is bit-identical to an
// uninterrupted one.
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/commands/pretrained.h"
#include "app/report/output.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

// A temporary folder for checkpoints, removed with the object.
class Scratch {
 public:
  Scratch() {
    std::string path = (fs::temp_directory_path() / "mxtrain-verify-XXXXXX").string();
    if (!mkdtemp(path.data()))
      Throw(ErrorKind::kFileSystem, "cannot create the folder {}: {}", path, ReasonOf(errno));
    path_ = path;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string File(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

// Keeps a copy of the checkpoint of one step.
class KeepStep final : public TrainListener {
 public:
  KeepStep(int64_t step, std::string file) : step_(step), file_(std::move(file)) {}
  void OnSave(const SaveEvent& e) override {
    if (e.step == step_) fs::copy_file(e.file, file_, fs::copy_options::skip_existing);
  }

 private:
  const int64_t step_;
  const std::string file_;
};

struct ArrayDifference {
  std::string name;
  int64_t elements = 0;
  double largest = 0;
};

void Compare(const char* kind, const std::map<std::string, NDArray>& straight,
             const std::map<std::string, NDArray>& resumed, std::vector<ArrayDifference>* found) {
  for (const auto& [name, array] : straight) {
    const std::vector<float> a = array.ToVector(), b = resumed.at(name).ToVector();
    ArrayDifference d{format("{} {}", kind, name)};
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
      ++d.elements;
      d.largest = std::max(d.largest, std::abs(static_cast<double>(a[i]) - b[i]));
    }
    if (d.elements > 0) found->push_back(d);
  }
}

class VerifyResume final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("verify-resume",
                 "verify that a stopped and resumed run is bit-identical to an uninterrupted one");
    config_.Declare(arguments);
    arguments.Option("--steps", &most_, "steps of the run; it is stopped halfway")
        .Within(int64_t{3}, int64_t{1} << 40)
        .ShowsDefault();
    arguments.Examples(
        "  mxtrain verify-resume config.yaml\n  mxtrain verify-resume config.yaml --steps 200 "
        "--threads 4");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    CatchSignals();
    const Scratch scratch;
    const std::string middle = scratch.File("middle");
    console.Message(LogLevel::kInfo, format("{} steps without interruption", most_));
    const int64_t stop = RunOnce(flags, console, scratch.File("straight"), middle, "");
    if (StopFlag() == 1) return 128 + StopSignal();
    console.Message(LogLevel::kInfo,
                    format("the same steps, resumed from a checkpoint of step {}", stop));
    RunOnce(flags, console, scratch.File("resumed"), "", middle);
    if (StopFlag() == 1) return 128 + StopSignal();
    return Report(flags, scratch.File("straight") + "/last", scratch.File("resumed") + "/last",
                  stop, console);
  }

 private:
  // Trains in a separate session, from `from` or from the beginning; `keep` gets the checkpoint
  // halfway. Returns its step.
  int64_t RunOnce(const CommonFlags& flags, console::Console& console, const std::string& folder,
                  const std::string& keep, const std::string& from) {
    ConfigArguments arguments = config_;
    arguments.overrides.push_back(format("train.max_steps={}", most_));
    session::Session session(arguments, flags, console.log());
    session.BuildNet();
    auto train = session.TrainIter();
    auto val = session.ValIter();
    TrainOptions options = session.MakeTrainOptions();
    session.CacheFeatures(&options);
    steps_ = std::min(most_, options.epochs * train->batches_per_epoch());
    const int64_t stop = steps_ / 2 + 1;
    if (stop >= steps_)
      Throw(ErrorKind::kUsage,
            "the run has {} steps; verify-resume needs at least 3: increase train.epochs", steps_);
    options.save = {0, stop, 0, 1};
    options.checkpoint_folder = folder;
    fs::create_directories(folder);
    if (!from.empty()) options.model.kernel_choices = PeekModel(from).kernel_choices;
    Trainer trainer(session.runtime(), options, *train, val.get());
    if (from.empty()) {
      TakePretrained(session, &trainer, console);
    } else {
      TakeBase(session, &trainer, console);
      trainer.Resume(LoadCheckpoint(session.runtime(), from));
    }
    KeepStep listener(keep.empty() ? -1 : stop, keep);
    trainer.Run(listener, &StopFlag());
    return stop;
  }

  int Report(const CommonFlags& flags, const std::string& straight, const std::string& resumed,
             int64_t stop, console::Console& console) const {
    std::vector<ArrayDifference> found;
    const bool same = ReadFile(straight) == ReadFile(resumed);
    if (!same) {
      Runtime runtime(RuntimeOptions(), BuiltinOperators());
      const Checkpoint a = LoadCheckpoint(runtime, straight), b = LoadCheckpoint(runtime, resumed);
      Compare("parameter", a.args, b.args, &found);
      Compare("auxiliary state", a.auxs, b.auxs, &found);
      Compare("optimizer state", a.optimizer, b.optimizer, &found);
      Compare("average", a.averages, b.averages, &found);
      Compare("residual", a.residuals, b.residuals, &found);
    }
    if (flags.json) {
      Json differences = Json::array();
      for (const ArrayDifference& d : found)
        differences.push_back(
            {{"array", d.name}, {"elements", d.elements}, {"largest", d.largest}});
      std::cout << report::JsonText({{"same", same},
                                     {"steps", steps_},
                                     {"stopped_at", stop},
                                     {"differences", differences}})
                << std::endl;
    } else if (same) {
      std::cout << format("bit-identical after {} steps: {} bytes of checkpoint\n", steps_,
                          fs::file_size(straight));
    }
    if (same) return 0;
    for (const ArrayDifference& d : found)
      console.Message(LogLevel::kError, format("{}: {} elements differ, by at most {}", d.name,
                                               d.elements, d.largest));
    console.Message(
        LogLevel::kError,
        found.empty()
            ? "the arrays are equal, but the state of the run (positions, metrics) differs"
            : "the resumed run differs; please report this with the configuration");
    return static_cast<int>(ErrorKind::kCheckFailed);
  }

  ConfigArguments config_;
  int64_t most_ = 20;  // requested steps
  int64_t steps_ = 0;  // of the run
};

}  // namespace

MXTRAIN_COMMAND(verify_resume, list) {
  list.Add(HelpGroup::kRuns, 30, std::make_unique<VerifyResume>());
}

}  // namespace mxtrain::commands
