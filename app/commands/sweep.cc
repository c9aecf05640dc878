// SPDX-License-Identifier: Apache-2.0
// mxtrain sweep CONFIG key=[a,b,c] ...: many runs of one configuration, each with its own process
// and run folder, and a sorted table; with --folds each on every fold of the training set.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <thread>

#include "app/commands/child_run.h"
#include "app/commands/command.h"
#include "app/commands/sweep_axis.h"
#include "app/config/load.h"
#include "app/report/output.h"
#include "app/report/plot/chart.h"
#include "app/report/run_folder.h"
#include "app/report/run_summary.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;
using report::RunSummary;

// A run of the sweep.
struct Trial {
  std::string name;  // of its folder: "0001"
  SweepPoint point;
  std::optional<int> exit_code;       // once it has ended
  std::optional<RunSummary> summary;  // once it has begun
};

std::string Describe(const SweepPoint& point) {
  std::string text;
  for (const auto& [key, value] : point)
    text += format("{}{}={}", text.empty() ? "" : " ", key.substr(key.rfind('.') + 1), value);
  return text;
}

std::optional<double> NumberOf(const std::string& text) {
  const config::Value value = config::Value::Scalar(text);
  return value.AsNumber();
}

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

  int Run(const CommonFlags& flags, report::Console& console) override {
    SplitOverrides();
    CatchSignals();
    MakeTrials(flags);
    const std::string name = CheckTrials();
    if (out_.empty()) out_ = "runs/" + name + (folds_ > 0 ? "-folds" : "-sweep");
    Open(flags);
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
    const std::vector<const Trial*> sorted = Sorted();
    if (std::any_of(sorted.begin(), sorted.end(), [](const Trial* t) { return HasBest(*t); }))
      plot::Save(DrawTrials(sorted), out_ + "/results");
    Print(sorted, flags.json);
    console.Message(
        LogLevel::kInfo,
        format("table and figure: {0}/results.csv, {0}/results.svg, {0}/results.png", out_));
    if (folds_ > 0)
      console.Message(LogLevel::kInfo, format("means over folds: {}/folds.csv", out_));
    return ExitCode(console);
  }

 private:
  // A run that diverged is a result; any other error is an error of the command.
  static constexpr const char* kFoldKey = "data.val.fold";
  static constexpr int kDivergedCode = static_cast<int>(ErrorKind::kDiverged);
  static bool WasStopped(const Trial& trial) {
    return trial.exit_code.value_or(0) > 128;
  }  // by a signal
  static bool Ended(const Trial& trial) {
    return trial.exit_code == 0 || trial.exit_code == kDivergedCode;
  }
  static bool HasBest(const Trial& trial) { return trial.summary && trial.summary->best; }

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
    for (const char* key : {"source", "path", "root", "columns", "label_delim", "split"})
      config_.overrides.push_back(format("data.val.{}=null", key));
    config_.overrides.push_back(format("data.val.folds={}", folds_));
  }

  void MakeTrials(const CommonFlags& flags) {
    std::vector<SweepPoint> points{{}};
    if (!axes_.empty())
      points = random_ > 0 ? RandomPoints(axes_, random_, flags.seed.value_or(0)) : Grid(axes_);
    for (const SweepPoint& point : points) {
      for (int fold = 0; fold < std::max(folds_, 1); ++fold) {
        Trial& trial =
            trials_.emplace_back(Trial{format("{:04}", trials_.size() + 1), point, {}, {}});
        if (folds_ > 0) trial.point.emplace_back(kFoldKey, std::to_string(fold));
      }
    }
  }

  std::vector<std::string> OverridesOf(const Trial& trial) const {
    std::vector<std::string> overrides = config_.overrides;
    for (const auto& [key, value] : trial.point) overrides.push_back(key + "=" + value);
    return overrides;
  }

  // Every configuration is checked before the first run. Returns the configuration's name.
  std::string CheckTrials() const {
    std::string name;
    for (const Trial& trial : trials_) {
      config::LoadRequest request;
      request.files = {config_.file};
      request.files.insert(request.files.end(), config_.more_files.begin(),
                           config_.more_files.end());
      request.overrides = OverridesOf(trial);
      config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
      name = config::LoadConfig(request, &diagnostics).config.name;
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
      before = Json::parse(ReadFile(file));
      if (before.at("sweep") != Identity(flags)) {
        Throw(ErrorKind::kUsage, "{} contains another sweep (see {}); choose another --out", out_,
              file);
      }
      for (size_t i = 0; i < trials_.size(); ++i) {
        const Json& code = before.at("trials").at(i).at("exit_code");
        if (!code.is_null()) trials_[i].exit_code = code.get<int>();
        ReadSummary(&trials_[i]);
      }
    } catch (const Json::exception& e) {
      Throw(ErrorKind::kData, "{} is damaged: {}", file, e.what());
    }
  }

  std::string FolderOf(const Trial& trial) const { return out_ + "/" + trial.name; }
  void ReadSummary(Trial* trial) const {
    if (report::IsRunFolder(FolderOf(*trial))) trial->summary = report::ReadRun(FolderOf(*trial));
  }

  // A killed sweep leaves a child, which saves and exits by itself. False if a stop was requested
  // first.
  static bool AwaitFree(const std::string& folder, report::Console& console) {
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

  void RunTrial(Trial* trial, size_t i, const CommonFlags& flags, report::Console& console) const {
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
                      flags.engine, "--threads", std::to_string(flags.threads)});
    if (begun) arguments.push_back("--resume");
    if (flags.seed) arguments.insert(arguments.end(), {"--seed", std::to_string(*flags.seed)});
    if (flags.deterministic) arguments.push_back("--deterministic");
    for (const std::string& plugin : flags.plugins)
      arguments.insert(arguments.end(), {"--plugin", plugin});
    console.Message(LogLevel::kInfo,
                    format("run {} of {}: {}", i + 1, trials_.size(), Describe(trial->point)));
    trial->exit_code = RunChild(arguments);
    ReadSummary(trial);
    console.Message(LogLevel::kInfo, format("  {}", Outcome(*trial)));
  }

  static std::string Outcome(const Trial& trial) {
    if (trial.exit_code == kDivergedCode) return "diverged";
    if (WasStopped(trial)) return "stopped";
    if (trial.exit_code != 0)
      return trial.exit_code ? format("exit code {}", *trial.exit_code) : "not run";
    if (!HasBest(trial)) return "finished";
    const RunSummary::Best& best = *trial.summary->best;
    return format("{} {} in epoch {}", best.metric, report::FormatNumber(best.value), best.epoch);
  }

  size_t CountEnded() const {
    return static_cast<size_t>(std::count_if(trials_.begin(), trials_.end(), Ended));
  }

  // Best first, runs without a result last.
  std::vector<const Trial*> Sorted() const {
    std::vector<const Trial*> sorted;
    for (const Trial& trial : trials_) sorted.push_back(&trial);
    std::stable_sort(sorted.begin(), sorted.end(), [](const Trial* a, const Trial* b) {
      if (!HasBest(*a) || !HasBest(*b)) return HasBest(*a) && !HasBest(*b);
      const RunSummary::Best &x = *a->summary->best, &y = *b->summary->best;
      return x.higher_is_better ? x.value > y.value : x.value < y.value;
    });
    return sorted;
  }

  std::string Table() const {
    std::string text = "run,state";
    for (const auto& [key, value] : trials_[0].point) text += "," + report::QuoteCsv(key);
    text += ",metric,best,best_epoch,last,seconds\n";
    for (const Trial* trial : Sorted()) {
      text += format("{},{}", trial->name, StateOf(*trial));
      for (const auto& [key, value] : trial->point) text += "," + report::QuoteCsv(value);
      if (HasBest(*trial)) {
        const RunSummary::Best& best = *trial->summary->best;
        const auto last = report::LastValue(trial->summary->metrics, best.metric);
        text += format(",{},{},{},{},{:.1f}\n", best.metric, best.value, best.epoch,
                       last ? format("{}", *last) : "", trial->summary->seconds);
      } else {
        text += ",,,,,\n";
      }
    }
    return text;
  }
  void WriteTable() const {
    WriteFileAtomically(out_ + "/results.csv", Table());
    if (folds_ > 0) WriteFileAtomically(out_ + "/folds.csv", FoldTable());
  }

  // Mean and standard deviation (of a sample: n - 1) of a value over the folds of one point.
  struct Spread {
    double mean = 0, deviation = 0;
    std::string Text() const {
      return format("{} ± {}", report::FormatNumber(mean), report::FormatNumber(deviation));
    }
  };
  static Spread SpreadOf(const std::vector<double>& values) {
    Spread spread;
    for (double value : values) spread.mean += value / static_cast<double>(values.size());
    for (double value : values) spread.deviation += (value - spread.mean) * (value - spread.mean);
    spread.deviation = values.size() > 1
                           ? std::sqrt(spread.deviation / static_cast<double>(values.size() - 1))
                           : 0;
    return spread;
  }

  // The results of the folds of one point, of runs that have one.
  struct FoldGroup {
    SweepPoint point;  // without the fold
    std::string metric;
    bool higher_is_better = false;
    std::vector<double> best, last;  // values of the best epochs, and of the last ones
  };
  // Ranked by the mean of the last epochs: best epochs are chosen on the examples that they are
  // measured on.
  std::vector<FoldGroup> FoldGroups() const {
    std::vector<FoldGroup> groups;
    for (size_t first = 0; first < trials_.size(); first += static_cast<size_t>(folds_)) {
      FoldGroup& group = groups.emplace_back();
      group.point.assign(trials_[first].point.begin(), trials_[first].point.end() - 1);
      for (size_t i = first; i < first + static_cast<size_t>(folds_); ++i) {
        if (!HasBest(trials_[i])) continue;
        const RunSummary& summary = *trials_[i].summary;
        group.metric = summary.best->metric;
        group.higher_is_better = summary.best->higher_is_better;
        group.best.push_back(summary.best->value);
        group.last.push_back(
            report::LastValue(summary.metrics, group.metric).value_or(summary.best->value));
      }
    }
    std::stable_sort(groups.begin(), groups.end(), [](const FoldGroup& a, const FoldGroup& b) {
      if (a.last.empty() || b.last.empty()) return !a.last.empty() && b.last.empty();
      const double x = SpreadOf(a.last).mean, y = SpreadOf(b.last).mean;
      return a.higher_is_better ? x > y : x < y;
    });
    return groups;
  }

  std::string FoldTable() const {
    std::string text;
    for (const SweepAxis& axis : axes_) text += report::QuoteCsv(axis.key) + ",";
    text += "metric,folds,last_mean,last_std,best_mean,best_std\n";
    for (const FoldGroup& group : FoldGroups()) {
      for (const auto& [key, value] : group.point) text += report::QuoteCsv(value) + ",";
      const Spread last = SpreadOf(group.last), best = SpreadOf(group.best);
      const bool any = !group.last.empty();
      text += any ? format("{},{},{},{},{},{}\n", group.metric, group.last.size(), last.mean,
                           last.deviation, best.mean, best.deviation)
                  : std::string(",0,,,,\n");
    }
    return text;
  }

  void PrintFolds() const {
    for (const FoldGroup& group : FoldGroups()) {
      if (group.last.empty()) continue;
      std::cout << format("{}{}{}: {} over {} folds (best epochs: {})\n", Describe(group.point),
                          group.point.empty() ? "" : "  ", group.metric,
                          SpreadOf(group.last).Text(), group.last.size(),
                          SpreadOf(group.best).Text());
    }
  }

  static std::string StateOf(const Trial& trial) {
    if (trial.exit_code == kDivergedCode) return "diverged";
    if (WasStopped(trial)) return "stopped";
    if (trial.exit_code.value_or(0) != 0) return format("exit code {}", *trial.exit_code);
    return trial.summary ? report::NameOf(trial.summary->state) : "not run";
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
                        {"best", best}});
      }
      Json result = {{"sweep", out_}, {"runs", rows}};
      if (folds_ > 0) result["folds"] = FoldsToJson();
      std::cout << report::JsonText(result) << "\n";
      return;
    }
    size_t width = 6;
    for (const Trial* trial : sorted) width = std::max(width, Describe(trial->point).size());
    std::cout << format("{:<6}  {:<{}}  {}\n", "run", "values", width, "best");
    for (const Trial* trial : sorted)
      std::cout << format("{:<6}  {:<{}}  {}\n", trial->name, Describe(trial->point), width,
                          Outcome(*trial));
    if (folds_ > 0) PrintFolds();
  }

  Json FoldsToJson() const {
    Json list = Json::array();
    for (const FoldGroup& group : FoldGroups()) {
      Json values = Json::object();
      for (const auto& [key, value] : group.point) values[key] = value;
      const Spread last = SpreadOf(group.last), best = SpreadOf(group.best);
      list.push_back({{"values", values},
                      {"metric", group.metric},
                      {"folds", group.last.size()},
                      {"last", {{"mean", last.mean}, {"std", last.deviation}}},
                      {"best", {{"mean", best.mean}, {"std", best.deviation}}}});
    }
    return list;
  }

  // The best value over each key that has numbers, one chart above the other, and the runs by rank.
  plot::Drawing DrawTrials(const std::vector<const Trial*>& sorted) const {
    const RunSummary::Best& best = *sorted[0]->summary->best;
    plot::Drawing all = plot::Draw(Ranking(sorted, best.metric));
    for (size_t k = 0; k < axes_.size(); ++k) {
      plot::Chart chart;
      chart.title = format("best {} over {}", best.metric, axes_[k].key);
      plot::Chart::Series series{
          .name = "", .points = {}, .kind = plot::Chart::Series::Kind::kPoints};
      double low = HUGE_VAL, high = -HUGE_VAL;
      for (const Trial* trial : sorted) {
        const auto x = NumberOf(trial->point[k].second);
        if (!x || !HasBest(*trial)) continue;
        series.points.push_back({*x, trial->summary->best->value});
        low = std::min(low, *x), high = std::max(high, *x);
      }
      if (series.points.size() < 2) continue;
      chart.x = {.label = axes_[k].key, .log = low > 0 && high >= 10 * low};
      chart.y.label = "best " + best.metric;
      chart.series = {series};
      all = plot::Stack(all, plot::Draw(chart, 720, 360));
    }
    return all;
  }

  static plot::BarChart Ranking(const std::vector<const Trial*>& sorted,
                                const std::string& metric) {
    constexpr size_t kMost = 30;
    plot::BarChart chart;
    chart.values = {.label = metric, .low = 0};
    chart.series = {{"best " + metric, {}}};
    size_t results = 0;
    for (const Trial* trial : sorted) {
      if (!HasBest(*trial) || ++results > kMost) continue;
      chart.names.push_back(Describe(trial->point));
      chart.series[0].values.push_back(trial->summary->best->value);
    }
    chart.title = results > kMost ? format("the best {} of {} runs", kMost, results)
                                  : format("{} runs, best first", results);
    return chart;
  }

  int ExitCode(report::Console& console) const {
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

std::unique_ptr<Command> MakeSweep() {
  return std::make_unique<Sweep>();
}

}  // namespace mxtrain::commands
