// SPDX-License-Identifier: Apache-2.0
#include "app/commands/sweep_folds.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "app/console/console.h"
#include "app/report/output.h"

namespace mxtrain::commands {
namespace {

using report::RunSummary;

// Of a value over the folds of one point.
struct Spread {
  double mean = 0, deviation = 0;
  std::string Text() const {
    return format("{} ± {}", report::FormatNumber(mean), report::FormatNumber(deviation));
  }
};

Spread SpreadOf(const std::vector<double>& values) {
  Spread spread;
  for (double value : values) spread.mean += value / static_cast<double>(values.size());
  for (double value : values) spread.deviation += (value - spread.mean) * (value - spread.mean);
  spread.deviation =
      values.size() > 1 ? std::sqrt(spread.deviation / static_cast<double>(values.size() - 1)) : 0;
  return spread;
}

// The results of the folds of one point, of runs that have one.
struct FoldGroup {
  SweepPoint point;  // without the fold
  std::string metric;
  bool higher_is_better = false;
  std::vector<double> best, last;  // values of the best epochs, and of the last ones
  // Of the loss and all metrics, of the last epochs.
  std::map<std::string, std::vector<double>> measures = {};
};

std::vector<FoldGroup> FoldGroups(const std::vector<Trial>& trials, int folds) {
  std::vector<FoldGroup> groups;
  for (size_t first = 0; first < trials.size(); first += static_cast<size_t>(folds)) {
    FoldGroup& group = groups.emplace_back();
    group.point.assign(trials[first].point.begin(), trials[first].point.end() - 1);
    for (size_t i = first; i < first + static_cast<size_t>(folds); ++i) {
      if (!HasBest(trials[i])) continue;
      const RunSummary& summary = *trials[i].summary;
      group.metric = summary.best->metric;
      group.higher_is_better = summary.best->higher_is_better;
      group.best.push_back(summary.best->value);
      group.last.push_back(
          report::LastValue(summary.metrics, group.metric).value_or(summary.best->value));
      for (const std::string& measure : summary.metrics.Measures()) {
        if (const auto value = report::LastValue(summary.metrics, measure))
          group.measures[measure].push_back(*value);
      }
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const FoldGroup& a, const FoldGroup& b) {
    if (a.last.empty() || b.last.empty()) return !a.last.empty() && b.last.empty();
    const double x = SpreadOf(a.last).mean, y = SpreadOf(b.last).mean;
    return a.higher_is_better ? x > y : x < y;
  });
  return groups;
}

}  // namespace

std::string FoldTable(const std::vector<Trial>& trials, int folds,
                      const std::vector<SweepAxis>& axes) {
  std::string text;
  for (const SweepAxis& axis : axes) text += report::QuoteCsv(axis.key) + ",";
  text += "metric,folds,last_mean,last_std,best_mean,best_std";
  const std::vector<std::string> measures = MeasuresOf(trials);
  for (const std::string& measure : measures)
    text += format(",{0}_mean,{0}_std", report::QuoteCsv(measure));
  text += "\n";
  for (const FoldGroup& group : FoldGroups(trials, folds)) {
    for (const auto& [key, value] : group.point) text += report::QuoteCsv(value) + ",";
    const Spread last = SpreadOf(group.last), best = SpreadOf(group.best);
    const bool any = !group.last.empty();
    text += any ? format("{},{},{},{},{},{}", group.metric, group.last.size(), last.mean,
                         last.deviation, best.mean, best.deviation)
                : std::string(",0,,,,");
    for (const std::string& measure : measures) {
      const auto of = group.measures.find(measure);
      if (of == group.measures.end()) {
        text += ",,";
        continue;
      }
      const Spread spread = SpreadOf(of->second);
      text += format(",{},{}", spread.mean, spread.deviation);
    }
    text += "\n";
  }
  return text;
}

std::string FoldText(const std::vector<Trial>& trials, int folds) {
  std::string text;
  for (const FoldGroup& group : FoldGroups(trials, folds)) {
    if (group.last.empty()) continue;
    text += format("{}{}{}: {} over {} folds (best epochs: {})\n", Describe(group.point),
                   group.point.empty() ? "" : "  ", group.metric, SpreadOf(group.last).Text(),
                   group.last.size(), SpreadOf(group.best).Text());
    for (const auto& [measure, values] : group.measures) {
      if (measure != group.metric) text += format("  {} {}\n", measure, SpreadOf(values).Text());
    }
  }
  return text;
}

Json FoldsToJson(const std::vector<Trial>& trials, int folds) {
  Json list = Json::array();
  for (const FoldGroup& group : FoldGroups(trials, folds)) {
    Json values = Json::object();
    for (const auto& [key, value] : group.point) values[key] = value;
    const Spread last = SpreadOf(group.last), best = SpreadOf(group.best);
    Json measures = Json::object();
    for (const auto& [measure, of] : group.measures)
      measures[measure] = {{"mean", SpreadOf(of).mean}, {"std", SpreadOf(of).deviation}};
    list.push_back({{"values", values},
                    {"measures", measures},
                    {"metric", group.metric},
                    {"folds", group.last.size()},
                    {"last", {{"mean", last.mean}, {"std", last.deviation}}},
                    {"best", {{"mean", best.mean}, {"std", best.deviation}}}});
  }
  return list;
}

}  // namespace mxtrain::commands
