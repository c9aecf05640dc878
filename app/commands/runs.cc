// SPDX-License-Identifier: Apache-2.0
// mxtrain runs [FOLDER]: a table of the runs in a folder.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/report/output.h"
#include "app/report/run_summary.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {
namespace {

using report::RunSummary;

class Runs final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("runs", "list the runs in a folder, including its sweeps");
    arguments.Option("folder", &folder_, "folder that contains run folders")
        .Takes("FOLDER")
        .ShowsDefault();
    arguments.Option("--sort", &sort_, "name, best (best value of each metric first) or time")
        .OneOf({"name", "best", "time"})
        .ShowsDefault();
    arguments.Option("--format", &format_, "table, csv or jsonl (like --json: one object per line)")
        .OneOf({"table", "csv", "jsonl"})
        .ShowsDefault();
    arguments.Examples(
        "  mxtrain runs\n  mxtrain runs runs/lenet-sweep --sort best\n  mxtrain runs --json");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    if (flags.json) format_ = "jsonl";
    if (!std::filesystem::is_directory(folder_))
      Throw(ErrorKind::kFileSystem,
            "there is no folder {}; mxtrain train creates runs/ in the working folder", folder_);
    std::vector<std::string> damaged;
    std::vector<RunSummary> runs = report::ReadRuns(folder_, &damaged);
    for (const std::string& text : damaged) console.Message(LogLevel::kWarning, text);
    if (runs.empty() && damaged.empty())
      console.Message(LogLevel::kInfo, format("{} contains no runs", folder_));
    Sort(&runs);
    if (format_ == "csv") {
      const std::vector<std::string> measures = MeasuresOf(runs);
      std::cout << "run,state,epochs,metric,best,best_epoch,last,seconds";
      for (const std::string& measure : measures)
        std::cout << ",last_" << report::QuoteCsv(measure);
      std::cout << "\n";
      for (const RunSummary& run : runs) {
        const Row row(run, folder_);
        std::cout << format("{},{},{},{},{},{},{},{:.1f}", report::QuoteCsv(row.name),
                            report::NameOf(run.state), run.epochs, report::QuoteCsv(row.metric),
                            row.best, row.epoch, row.last, run.seconds);
        for (const std::string& measure : measures) {
          const auto value = report::LastValue(run.metrics, measure);
          std::cout << (value ? format(",{}", *value) : ",");
        }
        std::cout << "\n";
      }
    } else if (format_ == "jsonl") {
      for (const RunSummary& run : runs) std::cout << report::JsonText(ToJson(run)) << "\n";
    } else {
      Print(runs);
    }
    return 0;
  }

 private:
  // The cells of a run; "" for unknown values.
  struct Row {
    Row(const RunSummary& run, const std::string& folder)
        : name(std::filesystem::path(run.path).lexically_relative(folder).string()) {
      if (!run.best) return;
      metric = report::Printable(run.best->metric);
      best = report::FormatNumber(run.best->value);
      epoch = std::to_string(run.best->epoch);
      if (const auto value = report::LastValue(run.metrics, metric))
        last = report::FormatNumber(*value);
    }
    std::string name, metric, best, epoch, last;  // name: as it is
  };

  // The loss and all metrics of the runs.
  static std::vector<std::string> MeasuresOf(const std::vector<RunSummary>& runs) {
    std::vector<std::string> all;
    for (const RunSummary& run : runs) {
      for (const std::string& measure : run.metrics.Measures()) {
        if (std::ranges::count(all, measure) == 0) all.push_back(measure);
      }
    }
    return all;
  }

  void Sort(std::vector<RunSummary>* runs) const {
    const auto before = [this](const RunSummary& a, const RunSummary& b) {
      if (sort_ == "time") return a.seconds > b.seconds;
      if (!a.best || !b.best) return a.best.has_value() && !b.best;
      if (a.best->metric != b.best->metric) return a.best->metric < b.best->metric;
      if (a.best->higher_is_better != b.best->higher_is_better) return a.best->higher_is_better;
      return a.best->higher_is_better ? a.best->value > b.best->value
                                      : a.best->value < b.best->value;
    };
    if (sort_ != "name") std::stable_sort(runs->begin(), runs->end(), before);
  }

  static Json ToJson(const RunSummary& run) {
    Json best = nullptr, last = Json::object();
    if (run.best)
      best = {{"metric", run.best->metric},
              {"value", run.best->value},
              {"epoch", run.best->epoch},
              {"higher_is_better", run.best->higher_is_better}};
    for (const std::string& measure : run.metrics.Measures()) {
      const std::optional<double> value = report::LastValue(run.metrics, measure);
      last[measure] = value ? Json(*value) : Json();
    }
    return {{"run", run.path},      {"state", report::NameOf(run.state)},
            {"epochs", run.epochs}, {"best", best},
            {"last", last},         {"seconds", run.seconds}};
  }

  void Print(const std::vector<RunSummary>& runs) const {
    if (runs.empty()) return;
    size_t name_width = 3, metric_width = 6;
    for (const RunSummary& run : runs) {
      name_width = std::max(name_width, report::Printable(Row(run, folder_).name).size());
      metric_width = std::max(metric_width, Row(run, folder_).metric.size());
    }
    std::cout << format("{:<{}}  {:<10}  {:>6}  {:<{}}  {:>10}  {:>8}  {:>10}  {:>9}\n", "run",
                        name_width, "state", "epochs", "metric", metric_width, "best", "at epoch",
                        "last", "time");
    for (const RunSummary& run : runs) {
      const Row row(run, folder_);
      std::cout << format("{:<{}}  {:<10}  {:>6}  {:<{}}  {:>10}  {:>8}  {:>10}  {:>9}\n",
                          report::Printable(row.name), name_width, report::NameOf(run.state),
                          run.epochs, row.metric, metric_width, row.best, row.epoch, row.last,
                          report::FormatDuration(run.seconds));
    }
  }

  std::string folder_ = "runs", sort_ = "name", format_ = "table";
};

}  // namespace

MXTRAIN_COMMAND(runs, list) {
  list.Add(HelpGroup::kRuns, 10, std::make_unique<Runs>());
}

}  // namespace mxtrain::commands
