// SPDX-License-Identifier: Apache-2.0
#include "app/commands/sweep_results.h"

#include <algorithm>
#include <cmath>

#include "app/config/config.h"
#include "app/config/value.h"
#include "app/console/console.h"
#include "app/report/output.h"
#include "app/report/plot/chart.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {
namespace {

using report::RunSummary;

constexpr int kDivergedCode = static_cast<int>(ErrorKind::kDiverged);

// By a signal.
bool WasStopped(const Trial& trial) {
  return trial.exit_code.value_or(0) > 128;
}

// A number, or a size such as 512MiB.
struct PlottedValue {
  double number;
  bool bytes = false;
};
std::optional<PlottedValue> PlottedValueOf(const std::string& text) {
  if (const auto number = config::Value::Scalar(text).AsNumber()) return PlottedValue{*number};
  const auto size = config::ParseByteCount(text);
  if (!size) return std::nullopt;
  return PlottedValue{static_cast<double>(size->bytes), true};
}

plot::BarChart Ranking(const std::vector<const Trial*>& ranked, const std::string& metric) {
  constexpr size_t kMost = 30;
  plot::BarChart chart;
  chart.values = {.label = report::Words(metric), .low = 0};
  chart.series = {{"best " + report::Words(metric), {}}};
  size_t results = 0;
  for (const Trial* trial : ranked) {
    if (!HasBest(*trial) || ++results > kMost) continue;
    chart.names.push_back(Describe(trial->point));
    chart.series[0].values.push_back(trial->summary->best->value);
  }
  chart.title = results > kMost ? format("the best {} of {} runs", kMost, results)
                                : format("{} runs, best first", results);
  return chart;
}

}  // namespace

std::string Describe(const SweepPoint& point) {
  std::string text;
  for (const auto& [key, value] : point)
    text += format("{}{}={}", text.empty() ? "" : " ", key.substr(key.rfind('.') + 1), value);
  return text;
}

bool Ended(const Trial& trial) {
  return trial.exit_code == 0 || trial.exit_code == kDivergedCode;
}

bool HasBest(const Trial& trial) {
  return trial.summary && trial.summary->best;
}

std::string Outcome(const Trial& trial) {
  if (trial.exit_code == kDivergedCode) return "diverged";
  if (WasStopped(trial)) return "stopped";
  if (trial.exit_code != 0)
    return trial.exit_code ? format("exit code {}", *trial.exit_code) : "not run";
  if (!HasBest(trial)) return "finished";
  const RunSummary::Best& best = *trial.summary->best;
  return format("{} {} in epoch {}", best.metric, report::FormatNumber(best.value), best.epoch);
}

std::string StateOf(const Trial& trial) {
  if (trial.exit_code == kDivergedCode) return "diverged";
  if (WasStopped(trial)) return "stopped";
  if (trial.exit_code.value_or(0) != 0) return format("exit code {}", *trial.exit_code);
  return trial.summary ? report::NameOf(trial.summary->state) : "not run";
}

std::vector<std::string> MeasuresOf(const std::vector<Trial>& trials) {
  std::vector<std::string> all;
  for (const Trial& trial : trials) {
    if (!trial.summary) continue;
    for (const std::string& measure : trial.summary->metrics.Measures()) {
      if (std::ranges::count(all, measure) == 0) all.push_back(measure);
    }
  }
  return all;
}

std::vector<const Trial*> Ranked(const std::vector<Trial>& trials) {
  std::vector<const Trial*> sorted;
  for (const Trial& trial : trials) sorted.push_back(&trial);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Trial* a, const Trial* b) {
    if (!HasBest(*a) || !HasBest(*b)) return HasBest(*a) && !HasBest(*b);
    const RunSummary::Best &x = *a->summary->best, &y = *b->summary->best;
    return x.higher_is_better ? x.value > y.value : x.value < y.value;
  });
  return sorted;
}

std::string ResultTable(const std::vector<Trial>& trials) {
  std::string text = "run,state";
  for (const auto& [key, value] : trials[0].point) text += "," + report::QuoteCsv(key);
  text += ",metric,best,best_epoch,last,seconds";
  const std::vector<std::string> measures = MeasuresOf(trials);
  for (const std::string& measure : measures) text += ",last_" + report::QuoteCsv(measure);
  text += "\n";
  for (const Trial* trial : Ranked(trials)) {
    text += format("{},{}", trial->name, StateOf(*trial));
    for (const auto& [key, value] : trial->point) text += "," + report::QuoteCsv(value);
    if (HasBest(*trial)) {
      const RunSummary::Best& best = *trial->summary->best;
      const auto last = report::LastValue(trial->summary->metrics, best.metric);
      text += format(",{},{},{},{},{:.1f}", best.metric, best.value, best.epoch,
                     last ? format("{}", *last) : "", trial->summary->seconds);
    } else {
      text += ",,,,,";
    }
    for (const std::string& measure : measures) {
      const auto last =
          trial->summary ? report::LastValue(trial->summary->metrics, measure) : std::nullopt;
      text += last ? format(",{}", *last) : ",";
    }
    text += "\n";
  }
  return text;
}

plot::Drawing DrawTrials(const std::vector<const Trial*>& ranked,
                         const std::vector<SweepAxis>& axes) {
  const RunSummary::Best& best = *ranked[0]->summary->best;
  plot::Drawing all = plot::Draw(Ranking(ranked, best.metric));
  for (size_t k = 0; k < axes.size(); ++k) {
    plot::Chart chart;
    chart.title = format("best {} over {}", report::Words(best.metric), axes[k].key);
    plot::Chart::Series series{
        .name = "", .points = {}, .kind = plot::Chart::Series::Kind::kPoints};
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (const Trial* trial : ranked) {
      const auto x = PlottedValueOf(trial->point[k].second);
      if (!x || !HasBest(*trial)) continue;
      series.points.push_back({x->number, trial->summary->best->value});
      chart.x.ticks.push_back(x->number);
      chart.x.bytes = chart.x.bytes || x->bytes;
      low = std::min(low, x->number), high = std::max(high, x->number);
    }
    if (series.points.size() < 2) continue;
    chart.x.label = axes[k].key;
    chart.x.log = low > 0 && high >= 10 * low;
    chart.y.label = "best " + report::Words(best.metric);
    chart.series = {series};
    all = plot::Stack(all, plot::Draw(chart, 720, 360));
  }
  return all;
}

}  // namespace mxtrain::commands
