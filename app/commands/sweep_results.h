// SPDX-License-Identifier: Apache-2.0
#pragma once
// The runs of a sweep: their state in words, their ranking, the table and the figure.
#include <optional>
#include <string>
#include <vector>

#include "app/commands/sweep_axis.h"
#include "app/report/plot/drawing.h"
#include "app/report/run_summary.h"

namespace mxtrain::commands {

// A run of the sweep.
struct Trial {
  std::string name;  // of its folder: "0001"
  SweepPoint point;
  std::optional<int> exit_code;               // once it has ended
  std::optional<report::RunSummary> summary;  // once it has begun
  bool caches_features = false;               // data.cache: features
};

// "lr=0.1 batch_size=32": the last parts of the keys.
std::string Describe(const SweepPoint& point);
// Whether it has run, also to the point where it diverged; any other error is one of the command.
bool Ended(const Trial& trial);
bool HasBest(const Trial& trial);  // whether an epoch was measured
// "accuracy 0.98 in epoch 7", "diverged", "exit code 3".
std::string Outcome(const Trial& trial);
// "finished", "stopped": for tables and JSON.
std::string StateOf(const Trial& trial);

// The loss and the metrics that the runs have, in the order of the first.
std::vector<std::string> MeasuresOf(const std::vector<Trial>& trials);
// Best first, runs without a result last.
std::vector<const Trial*> Ranked(const std::vector<Trial>& trials);
// The text of results.csv: of each run its best epoch, and every measure of its last one.
std::string ResultTable(const std::vector<Trial>& trials);
// The runs by rank, and the best value over each key that has numbers, one chart above the other.
// `ranked`: at least one has a result.
plot::Drawing DrawTrials(const std::vector<const Trial*>& ranked,
                         const std::vector<SweepAxis>& axes);

}  // namespace mxtrain::commands
