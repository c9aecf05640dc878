// SPDX-License-Identifier: Apache-2.0
#pragma once
// Summary of a run from its folder, for tables of runs.
#include <optional>
#include <string>
#include <vector>

#include "app/report/metrics_table.h"

namespace mxtrain::report {

struct RunSummary {
  enum class State {
    kRunning,
    kFinished,
    kStopped,  // by a signal, after saving
    kDiverged,
    kBrokenOff,  // killed, or by another error
    kUnknown,    // of an older version
  };
  struct Best {
    std::string metric;
    double value = 0;
    int64_t epoch = 0;
    bool higher_is_better = false;
  };
  std::string path;
  State state = State::kBrokenOff;
  MetricsTable metrics;
  std::optional<Best> best;  // of a completed run
  double seconds = 0;        // of training, without evaluation and saves
  int64_t epochs = 0;        // completed
};

const char* NameOf(RunSummary::State state);
// Throws kFileSystem if it is not a run folder, kData for damaged files in it.
RunSummary ReadRun(const std::string& path);
// The run folders in a folder and in its sweeps, by name; adds an error text to `damaged` for each
// unreadable one.
std::vector<RunSummary> ReadRuns(const std::string& parent, std::vector<std::string>* damaged);
// A measure in the last row: of validation, else of training; nothing if it was not measured.
std::optional<double> LastValue(const MetricsTable& table, const std::string& measure);

}  // namespace mxtrain::report
