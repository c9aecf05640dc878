// SPDX-License-Identifier: Apache-2.0
// mxtrain diff RUN RUN: configuration, data, environment and metrics of two runs, side by side.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "app/commands/command_list.h"
#include "app/config/differences.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/report/plot/chart.h"
#include "app/report/run_summary.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;
using report::RunSummary;

using config::Compare;
using config::Difference;
using config::Facts;

Facts ConfigOf(const RunSummary& run) {
  const std::string path = run.path + "/config.yaml";
  return config::FlattenText(path, ReadFile(path));
}

Facts EnvironmentOf(const RunSummary& run) {
  Facts facts;
  const std::string path = run.path + "/env.txt";
  if (!fs::exists(path)) return facts;
  std::istringstream lines(ReadFile(path));
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos)
      facts.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return facts;
}

// Fingerprints of the data, from the last checkpoint.
Facts DataOf(const RunSummary& run) {
  Facts facts;
  const std::string last = run.path + "/checkpoints/last";
  if (!fs::exists(last)) return facts;
  const ModelInfo model = PeekModel(last);
  if (!model.train_data.empty()) facts.emplace_back("training", model.train_data);
  if (!model.val_data.empty()) facts.emplace_back("validation", model.val_data);
  return facts;
}

std::string Number(std::optional<double> value) {
  return value && std::isfinite(*value) ? report::FormatNumber(*value) : "";
}

Facts MetricsOf(const RunSummary& run) {
  Facts facts{{"state", report::NameOf(run.state)}, {"epochs", std::to_string(run.epochs)}};
  if (run.best) {
    facts.emplace_back("best " + run.best->metric, Number(run.best->value));
    facts.emplace_back("best epoch", std::to_string(run.best->epoch));
  }
  for (const std::string& column : run.metrics.columns) {
    const bool measured = column.starts_with("train_") || column.starts_with("val_");
    if (measured && !run.metrics.rows.empty())
      facts.emplace_back("last " + column, Number(run.metrics.Column(column).back()));
  }
  facts.emplace_back("time", report::FormatDuration(run.seconds));
  return facts;
}

class Diff final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("diff", "compare two runs: configuration, data, environment, metrics");
    arguments.Option("left", &left_, "run folder").Required().Takes("RUN");
    arguments.Option("right", &right_, "run folder").Required().Takes("RUN");
    arguments.Flag("--all", &all_, "also show equal values");
    arguments.Option("--plot", &plot_, "draw the curves of both runs into this file (.svg, .png)")
        .Takes("FILE");
    arguments.Flag("--overwrite", &overwrite_, "replace existing files");
    arguments.Examples(
        "  mxtrain diff runs/lenet-0001 runs/lenet-0002\n  mxtrain diff runs/lenet-0001 "
        "runs/latest --plot curves.png");
  }

  int Run(const CommonFlags& flags, console::Console&) override {
    left_ = FollowLink(left_), right_ = FollowLink(right_);
    report::RequireFree(std::array{plot_}, std::array{left_, right_}, overwrite_);
    const RunSummary left = report::ReadRun(left_), right = report::ReadRun(right_);
    const std::pair<const char*, std::vector<Difference>> parts[] = {
        {"configuration", Compare(ConfigOf(left), ConfigOf(right), all_)},
        {"data", Compare(DataOf(left), DataOf(right), all_)},
        {"environment", Compare(EnvironmentOf(left), EnvironmentOf(right), all_)},
        {"metrics", Compare(MetricsOf(left), MetricsOf(right), true)},
    };
    if (!plot_.empty()) plot::SaveAs(DrawCurves(left, right), plot_);
    if (flags.json) {
      Json result = {{"left", left.path}, {"right", right.path}};
      for (const auto& [part, differences] : parts) {
        result[part] = Json::object();
        for (const Difference& d : differences) result[part][d.name] = {d.left, d.right};
      }
      std::cout << report::JsonText(result) << "\n";
      return 0;
    }
    for (const auto& [part, differences] : parts) Print(part, differences);
    return 0;
  }

 private:
  void Print(const std::string& part, std::vector<Difference> differences) const {
    for (Difference& d : differences)
      d = {report::Printable(d.name), report::Printable(d.left), report::Printable(d.right)};
    if (differences.empty()) {
      std::cout << format("{}: no difference\n\n", part);
      return;
    }
    size_t name_width = part.size(), left_width = left_.size();
    for (const Difference& d : differences) {
      name_width = std::max(name_width, d.name.size());
      left_width = std::max(left_width, d.left.size());
    }
    std::cout << format("{:<{}}  {:<{}}  {}\n", part, name_width, left_, left_width, right_);
    for (const Difference& d : differences)
      std::cout << format("{:<{}}  {:<{}}  {}\n", d.name, name_width, d.left, left_width, d.right);
    std::cout << "\n";
  }

  // The metrics that both runs have, of validation if measured.
  plot::Drawing DrawCurves(const RunSummary& left, const RunSummary& right) const {
    std::optional<plot::Drawing> all;
    for (const std::string& measure : left.metrics.Measures()) {
      plot::Chart chart;
      const bool validated = !left.metrics.Column("val_" + measure).empty() &&
                             !right.metrics.Column("val_" + measure).empty();
      const std::string column = (validated ? "val_" : "train_") + measure;
      chart.title =
          format("{} of {}", report::Words(measure), validated ? "validation" : "training");
      chart.x = {.label = "epoch", .whole = true};
      chart.y.label = report::Words(measure);
      for (const RunSummary* run : {&left, &right}) {
        const std::vector<double> epochs = run->metrics.Column("epoch"),
                                  values = run->metrics.Column(column);
        plot::Chart::Series series{.name = run->path, .points = {}};
        for (size_t i = 0; i < values.size(); ++i) series.points.push_back({epochs[i], values[i]});
        chart.series.push_back(std::move(series));
      }
      const plot::Drawing one = plot::Draw(chart);
      all = all ? plot::Stack(*all, one) : one;
    }
    if (!all) Throw(ErrorKind::kData, "{} has no completed epoch to draw", left.path);
    return *all;
  }

  std::string left_, right_, plot_;
  bool all_ = false, overwrite_ = false;
};

}  // namespace

MXTRAIN_COMMAND(diff, list) {
  list.Add(HelpGroup::kRuns, 20, std::make_unique<Diff>());
}

}  // namespace mxtrain::commands
