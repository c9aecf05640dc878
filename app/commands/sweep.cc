// SPDX-License-Identifier: Apache-2.0
// mxtrain sweep CONFIG key=[a,b,c] ...: many runs of one configuration, each with its own process
// and run folder, and a sorted table; with --folds each on every fold of the training set.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>

#include "app/commands/child_run.h"
#include "app/commands/command_list.h"
#include "app/commands/sweep_axis.h"
#include "app/commands/sweep_folds.h"
#include "app/commands/sweep_results.h"
#include "app/config/load.h"
#include "app/config/schema.h"
#include "app/report/output.h"
#include "app/report/run_folder.h"
#include "app/report/run_summary.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

class Sweep final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add(
        "sweep", "train one configuration with several values of its keys, and rank the runs");
    config_.Declare(arguments);
    arguments
        .Option("--random", &random_,
                "number of random draws instead of all combinations; allows ranges key=low..high")
        .Takes("N")
        .Positive();
    arguments
        .Option("--folds", &folds_,
                "cross-validation: one run for each of N equal parts of the training set, held out "
                "in turn; only the transforms of data.val are used")
        .Takes("N")
        .Within(2, 1000);
    arguments
        .Option("--out", &out_,
                "folder of the runs; after a stop, the same command continues there; default: "
                "runs/NAME-sweep")
        .Takes("DIR");
    arguments.Examples(
        "  mxtrain sweep config.yaml 'train.optimizer.lr=[0.01,0.03,0.1]'\n"
        "  mxtrain sweep config.yaml 'train.optimizer.lr=[0.01,0.1]' 'data.batch_size=[32,64]' "
        "train.epochs=5\n"
        "  mxtrain sweep config.yaml --folds 5\n"
        "  mxtrain sweep config.yaml train.optimizer.lr=1e-4..1 train.optimizer.momentum=0.8..0.99 "
        "--random 20 --out search");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    SplitOverrides();
    CatchSignals();
    MakeTrials(flags);
    const std::string name = CheckTrials();
    if (out_.empty()) out_ = "runs/" + name + (folds_ > 0 ? "-folds" : "-sweep");
    Open(flags);
    if (std::ranges::any_of(trials_, &Trial::caches_features)) {
      console.Message(LogLevel::kInfo,
                      format("features of frozen layers are shared: runs that make the same of "
                             "their images compute them once, in {}",
                             FeatureFolder()));
    }
    for (size_t i = 0; i < trials_.size() && StopFlag() != 1; ++i) {
      if (!Ended(trials_[i])) RunTrial(&trials_[i], i, flags, console);
      Save(flags);
      WriteTable();
    }
    if (StopFlag() == 1) {
      console.Message(LogLevel::kInfo,
                      format("stopped after {} of {} runs; the same command continues",
                             CountEnded(), trials_.size()));
      return 128 + StopSignal();
    }
    if (CountEnded() == trials_.size()) fs::remove_all(FeatureFolder());
    const std::vector<const Trial*> sorted = Ranked(trials_);
    if (std::any_of(sorted.begin(), sorted.end(), [](const Trial* t) { return HasBest(*t); }))
      plot::Save(DrawTrials(sorted, axes_), out_ + "/results");
    Print(sorted, flags.json);
    console.Message(
        LogLevel::kInfo,
        format("table and figure: {0}/results.csv, {0}/results.svg, {0}/results.png", out_));
    if (folds_ > 0) {
      console.Message(LogLevel::kInfo, format("means over folds: {}/folds.csv", out_));
      PredictFolds(console);
    }
    return ExitCode(console);
  }

 private:
  static constexpr const char* kFoldKey = "data.val.fold";

  void SplitOverrides() {
    std::vector<std::string> plain;
    for (const std::string& text : config_.overrides) {
      if (auto axis = ParseSweepAxis(text)) {
        axes_.push_back(std::move(*axis));
      } else {
        plain.push_back(text);
      }
    }
    config_.overrides = std::move(plain);
    if (axes_.empty() && folds_ == 0)
      Throw(ErrorKind::kUsage,
            "nothing to sweep: give KEY=[A,B,...], or KEY=LOW..HIGH with --random N, or --folds N");
    if (folds_ > 0) HoldOutFolds();
  }

  // Replaces the validation data of the configuration.
  void HoldOutFolds() {
    config_.overrides.push_back("data.val.source=null");
    for (const config::KeyInfo& key : config::DescribeKeys()) {
      // Held-out data has the keys that are also for data without a source.
      const bool of_source = key.path.starts_with("data.val.") && key.selector == "source" &&
                             std::count(key.only_for.begin(), key.only_for.end(), "") == 0;
      if (of_source) config_.overrides.push_back(key.path + "=null");
    }
    config_.overrides.push_back(format("data.val.folds={}", folds_));
  }

  void MakeTrials(const CommonFlags& flags) {
    std::vector<SweepPoint> points{{}};
    if (!axes_.empty())
      points = random_ > 0 ? RandomPoints(axes_, random_, flags.seed.value_or(0)) : Grid(axes_);
    for (const SweepPoint& point : points) {
      for (int fold = 0; fold < std::max(folds_, 1); ++fold) {
        Trial& trial =
            trials_.emplace_back(Trial{format("{:04}", trials_.size() + 1), point, {}, {}, false});
        if (folds_ > 0) trial.point.emplace_back(kFoldKey, std::to_string(fold));
      }
    }
  }

  std::vector<std::string> OverridesOf(const Trial& trial) const {
    std::vector<std::string> overrides = config_.overrides;
    for (const auto& [key, value] : trial.point) overrides.push_back(format("{}={}", key, value));
    return overrides;
  }

  // Every configuration is checked before the first run. Returns the configuration's name.
  std::string CheckTrials() {
    std::string name;
    for (Trial& trial : trials_) {
      config::LoadRequest request;
      request.files = {config_.file};
      request.files.insert(request.files.end(), config_.more_files.begin(),
                           config_.more_files.end());
      request.overrides = OverridesOf(trial);
      config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
      const config::Config config = config::LoadConfig(request, &diagnostics).config;
      name = config.name;
      trial.caches_features = config.data.cache == "features";
      diagnostics.ThrowIfErrors();
    }
    return name;
  }

  // Identifies a sweep: a different one must not continue in its folder.
  Json Identity(const CommonFlags& flags) const {
    Json axes = Json::array();
    for (const SweepAxis& axis : axes_) {
      axes.push_back(
          {{"key", axis.key}, {"values", axis.values}, {"low", axis.low}, {"high", axis.high}});
    }
    return {{"config", fs::absolute(config_.file).lexically_normal().string()},
            {"files", config_.more_files},
            {"overrides", config_.overrides},
            {"axes", axes},
            {"random", random_},
            {"folds", folds_},
            {"seed", flags.seed.value_or(0)}};
  }

  void Save(const CommonFlags& flags) const {
    Json trials = Json::array();
    for (const Trial& trial : trials_) {
      Json values = Json::object();
      for (const auto& [key, value] : trial.point) values[key] = value;
      trials.push_back({{"run", trial.name},
                        {"values", values},
                        {"exit_code", trial.exit_code ? Json(*trial.exit_code) : Json()}});
    }
    WriteFileAtomically(
        out_ + "/sweep.json",
        report::JsonText({{"sweep", Identity(flags)}, {"trials", trials}}, 2) + "\n");
  }

  // A new folder, or one where the same sweep was started.
  void Open(const CommonFlags& flags) {
    MakeFolders(out_);
    const std::string file = out_ + "/sweep.json";
    const bool begun = fs::exists(file);
    if (!begun && !report::RunFolder::IsUnused(out_))
      Throw(ErrorKind::kFileSystem,
            "{} is not empty and does not belong to a sweep; choose another --out", out_);
    own_ = report::RunFolder::Open(out_);
    if (!begun) return Save(flags);
    Json before;
    try {
      before = ReadJsonOf<Json>(file + " is damaged", ReadFile(file));
      if (before.at("sweep") != Identity(flags)) {
        Throw(ErrorKind::kUsage, "{} contains another sweep (see {}); choose another --out", out_,
              file);
      }
      for (size_t i = 0; i < trials_.size(); ++i) {
        const Json& code = before.at("trials").at(i).at("exit_code");
        if (!code.is_null()) {
          const std::optional<int64_t> number = IntegerIn(code, 0, 255);
          if (!number) Throw(ErrorKind::kData, "{} is damaged: exit_code {}", file, code.dump());
          trials_[i].exit_code = static_cast<int>(*number);
        }
        ReadSummary(&trials_[i]);
      }
    } catch (const Json::exception& e) {
      Throw(ErrorKind::kData, "{} is damaged: {}", file, e.what());
    }
  }

  std::string FeatureFolder() const { return out_ + "/features"; }
  std::string FolderOf(const Trial& trial) const { return out_ + "/" + trial.name; }
  void ReadSummary(Trial* trial) const {
    if (report::IsRunFolder(FolderOf(*trial))) trial->summary = report::ReadRun(FolderOf(*trial));
  }

  // A killed sweep leaves a child, which saves and exits by itself. False if a stop was requested
  // first.
  static bool AwaitFree(const std::string& folder, console::Console& console) {
    if (report::RunFolder::IsBusy(folder))
      console.Message(
          LogLevel::kInfo,
          format("  {} is in use by another process; waiting for it to finish", folder));
    while (report::RunFolder::IsBusy(folder)) {
      if (StopFlag() == 1) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return true;
  }

  void RunTrial(Trial* trial, size_t i, const CommonFlags& flags, console::Console& console) const {
    const std::string folder = FolderOf(*trial);
    if (!AwaitFree(folder, console)) return;
    const bool begun = report::IsRunFolder(folder);
    if (!begun) fs::remove_all(folder);  // killed before it became a run
    std::vector<std::string> arguments{"train", config_.file};
    for (const std::string& text : OverridesOf(*trial)) arguments.push_back(text);
    for (const std::string& file : config_.more_files)
      arguments.insert(arguments.end(), {"-c", file});
    arguments.insert(arguments.end(),
                     {"--out", folder, "--quiet", "--device", flags.device, "--engine",
                      flags.engine, "--threads", std::to_string(flags.threads), "--cpu-workers",
                      std::to_string(flags.cpu_workers), "--log-size", flags.log_size});
    if (!flags.log_level.empty())
      arguments.insert(arguments.end(), {"--log-level", flags.log_level});
    // What the frozen layers make of the images is the same in runs that differ behind them.
    if (trial->caches_features) arguments.insert(arguments.end(), {"--features", FeatureFolder()});
    if (begun) arguments.push_back("--resume");
    if (flags.seed) arguments.insert(arguments.end(), {"--seed", std::to_string(*flags.seed)});
    if (flags.deterministic) arguments.push_back("--deterministic");
    if (flags.strict_device) arguments.push_back("--strict-device");
    for (const std::string& plugin : flags.plugins)
      arguments.insert(arguments.end(), {"--plugin", plugin});
    console.Message(LogLevel::kInfo,
                    format("run {} of {}: {}", i + 1, trials_.size(), Describe(trial->point)));
    trial->exit_code = RunChild(arguments);
    ReadSummary(trial);
    console.Message(LogLevel::kInfo, format("  {}", Outcome(*trial)));
  }

  size_t CountEnded() const {
    return static_cast<size_t>(std::count_if(trials_.begin(), trials_.end(), Ended));
  }

  void WriteTable() const {
    WriteFileAtomically(out_ + "/results.csv", ResultTable(trials_));
    if (folds_ > 0) WriteFileAtomically(out_ + "/folds.csv", FoldTable(trials_, folds_, axes_));
  }

  void Print(const std::vector<const Trial*>& sorted, bool json) const {
    if (json) {
      Json rows = Json::array();
      for (const Trial* trial : sorted) {
        Json values = Json::object(), best = nullptr;
        for (const auto& [key, value] : trial->point) values[key] = value;
        if (HasBest(*trial))
          best = {{"metric", trial->summary->best->metric},
                  {"value", trial->summary->best->value},
                  {"epoch", trial->summary->best->epoch}};
        rows.push_back({{"run", FolderOf(*trial)},
                        {"state", StateOf(*trial)},
                        {"values", values},
                        {"best", best},
                        {"last", LastOf(*trial)}});
      }
      Json result = {{"sweep", out_}, {"runs", rows}};
      if (folds_ > 0) result["folds"] = FoldsToJson(trials_, folds_);
      std::cout << report::JsonText(result) << "\n";
      return;
    }
    size_t width = 6;
    for (const Trial* trial : sorted) width = std::max(width, Describe(trial->point).size());
    std::cout << format("{:<6}  {:<{}}  {}\n", "run", "values", width, "best");
    for (const Trial* trial : sorted)
      std::cout << format("{:<6}  {:<{}}  {}\n", trial->name, Describe(trial->point), width,
                          Outcome(*trial));
    if (folds_ > 0) std::cout << FoldText(trials_, folds_);
  }

  // Every measure of the last epoch.
  static Json LastOf(const Trial& trial) {
    Json last = Json::object();
    if (!trial.summary) return last;
    for (const std::string& measure : trial.summary->metrics.Measures()) {
      const auto value = report::LastValue(trial.summary->metrics, measure);
      last[measure] = value ? Json(*value) : Json();
    }
    return last;
  }

  // Of each point the predictions for all folds, each by the run that did not train on it: its last
  // epoch, as the best one is chosen on the fold itself.
  void PredictFolds(console::Console& console) const {
    std::vector<std::string> files;
    for (size_t first = 0; first < trials_.size(); first += static_cast<size_t>(folds_)) {
      std::string all;
      for (size_t i = first; i < first + static_cast<size_t>(folds_); ++i) {
        if (!HasBest(trials_[i])) return;
        const std::string folder = FolderOf(trials_[i]), file = folder + "/held_out.csv";
        const int code = RunChild({"eval", folder + "/checkpoints/last", "--predictions", file,
                                   "--overwrite", "--quiet", "--skip-bad"});
        if (code != 0) {
          console.Message(LogLevel::kWarning,
                          format("{}: its predictions for the fold that it did not train on could "
                                 "not be made (exit code {})",
                                 folder, code));
          return;
        }
        const std::string text = ReadFile(file);
        all += all.empty() ? text : text.substr(std::min(text.find('\n') + 1, text.size()));
      }
      const bool one = trials_.size() == static_cast<size_t>(folds_);
      files.push_back(format("{}/out_of_fold{}.csv", out_, one ? "" : "-" + trials_[first].name));
      WriteFileAtomically(files.back(), all);
    }
    console.Message(
        LogLevel::kInfo,
        format("predictions for all examples, each by the run that did not train on it: {}",
               FirstOf(files, 4)));
  }

  int ExitCode(console::Console& console) const {
    const size_t failed = trials_.size() - CountEnded();
    if (failed == 0) return 0;
    console.Message(LogLevel::kError, format("{} of {} runs failed; the same command retries them",
                                             failed, trials_.size()));
    return *std::find_if(trials_.begin(), trials_.end(), [](const Trial& t) {
              return !Ended(t);
            })->exit_code;
  }

  ConfigArguments config_;
  int random_ = 0, folds_ = 0;
  std::string out_;
  std::optional<report::RunFolder> own_;  // the folder of the sweep: one process at a time
  std::vector<SweepAxis> axes_;
  std::vector<Trial> trials_;
};

}  // namespace

MXTRAIN_COMMAND(sweep, list) {
  list.Add(HelpGroup::kChoices, 40, std::make_unique<Sweep>());
}

}  // namespace mxtrain::commands
