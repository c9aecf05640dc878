// mxtrain diff RUN RUN: configuration, data, environment and metrics of two runs, side by side.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "app/commands/command.h"
#include "app/config/document.h"
#include "app/report/output.h"
#include "app/report/plot/chart.h"
#include "app/report/run_summary.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/train/checkpoint.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;
using report::RunSummary;

// Text by name, in the order in which the first run has them.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct Difference {
  std::string name, left, right;  // "" where a run has none of that name
};

// "train.optimizer.lr" and its value, for everything in a configuration; lists of scalars are one value.
void Flatten(const config::Value& value, const std::string& path, Facts* facts) {
  const auto below = [&path](const std::string& key) { return path.empty() ? key : path + "." + key; };
  const bool nested = std::any_of(value.list.begin(), value.list.end(), [](const config::Value& v) { return v.is_map() || v.is_list(); });
  if (value.is_map()) {
    for (const config::Member& member : value.members) Flatten(member.value, below(member.key), facts);
  } else if (nested) {
    for (size_t i = 0; i < value.list.size(); ++i) Flatten(value.list[i], below(std::to_string(i)), facts);
  } else if (!value.is_null()) {
    std::string text = config::ToYaml(value);
    text.erase(text.find_last_not_of('\n') + 1);
    facts->emplace_back(path, text);
  }
}

Facts ConfigOf(const RunSummary& run) {
  const std::string path = run.path + "/config.yaml";
  auto sources = std::make_shared<config::SourceMap>();
  const int file = sources->AddFile(path, ReadFile(path), fs::path(run.path));
  config::Diagnostics diagnostics(sources);
  Facts facts;
  Flatten(config::ParseYaml(file, &diagnostics), "", &facts);
  return facts;
}

Facts EnvironmentOf(const RunSummary& run) {
  Facts facts;
  const std::string path = run.path + "/env.txt";
  if (!fs::exists(path)) return facts;
  std::istringstream lines(ReadFile(path));
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) facts.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return facts;
}

// Fingerprints of the data, which its last checkpoint holds.
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
    if (measured) facts.emplace_back("last " + column, Number(run.metrics.Column(column).back()));
  }
  facts.emplace_back("time", report::FormatDuration(run.seconds));
  return facts;
}

// Every name of either; with `all` also those on which they agree.
std::vector<Difference> Compare(const Facts& left, const Facts& right, bool all) {
  const std::map<std::string, std::string> of_left(left.begin(), left.end()), of_right(right.begin(), right.end());
  const auto find = [](const auto& facts, const std::string& name) { return facts.contains(name) ? facts.at(name) : std::string(); };
  std::vector<Difference> differences;
  for (const auto& [name, value] : left) {
    if (all || find(of_right, name) != value) differences.push_back({name, value, find(of_right, name)});
  }
  for (const auto& [name, value] : right) {
    if (!of_left.contains(name)) differences.push_back({name, "", value});
  }
  return differences;
}

class Diff final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("diff", "two runs side by side: configuration, data, environment, metrics");
    arguments.Option("left", &left_, "run folder").Required().Takes("RUN");
    arguments.Option("right", &right_, "run folder").Required().Takes("RUN");
    arguments.Flag("--all", &all_, "also what both have in common");
    arguments.Option("--plot", &plot_, "draw the curves of both into this file (.svg, .png)").Takes("FILE");
    arguments.Examples("  mxtrain diff runs/lenet-0001 runs/lenet-0002\n  mxtrain diff runs/lenet-0001 runs/latest --plot curves.png");
  }

  int Run(const CommonFlags& flags, report::Console&) override {
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
  void Print(const std::string& part, const std::vector<Difference>& differences) const {
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
    for (const Difference& d : differences) std::cout << format("{:<{}}  {:<{}}  {}\n", d.name, name_width, d.left, left_width, d.right);
    std::cout << "\n";
  }

  // The measures that both have, validation where it was measured.
  plot::Drawing DrawCurves(const RunSummary& left, const RunSummary& right) const {
    std::optional<plot::Drawing> all;
    for (const std::string& measure : left.metrics.Measures()) {
      plot::Chart chart;
      const bool validated = !left.metrics.Column("val_" + measure).empty() && !right.metrics.Column("val_" + measure).empty();
      const std::string column = (validated ? "val_" : "train_") + measure;
      chart.title = format("{} of {}", measure, validated ? "validation" : "training");
      chart.x = {.label = "epoch", .whole = true};
      chart.y.label = measure;
      for (const RunSummary* run : {&left, &right}) {
        const std::vector<double> epochs = run->metrics.Column("epoch"), values = run->metrics.Column(column);
        plot::Chart::Series series{.name = run->path, .points = {}};
        for (size_t i = 0; i < values.size(); ++i) series.points.push_back({epochs[i], values[i]});
        chart.series.push_back(std::move(series));
      }
      const plot::Drawing one = plot::Draw(chart);
      all = all ? plot::Stack(*all, one) : one;
    }
    if (!all) Throw(ErrorKind::kData, "{} has no finished epoch to draw", left.path);
    return *all;
  }

  std::string left_, right_, plot_;
  bool all_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDiff() {
  return std::make_unique<Diff>();
}

}  // namespace mxtrain::commands
