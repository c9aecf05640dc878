#pragma once
// What a run folder says of its run, for tables of runs.
#include <optional>
#include <string>
#include <vector>

#include "app/report/metrics_table.h"

namespace mxtrain::report {

struct RunSummary {
  enum class State {
    kRunning,
    kFinished,
    kStopped,
    kDiverged,
    kBrokenOff,
    kUnknown
  };  // kStopped: by a signal, after saving; kBrokenOff: killed, or by another error; kUnknown: of a version that did not say
  struct Best {
    std::string metric;
    double value = 0;
    int64_t epoch = 0;
    bool higher_is_better = false;
  };
  std::string path;
  State state = State::kBrokenOff;
  MetricsTable metrics;
  std::optional<Best> best;  // of a run that ended
  double seconds = 0;        // of training, without evaluation and saves
  int64_t epochs = 0;        // that are done
};

const char* NameOf(RunSummary::State state);
bool IsRunFolder(const std::string& path);
// Throws kFileSystem for what is no run folder, kData for files in it that are damaged.
RunSummary ReadRun(const std::string& path);
// The run folders in a folder and in the sweeps there, by name; what is wrong with those that cannot be read goes to `damaged`, a sentence each.
std::vector<RunSummary> ReadRuns(const std::string& parent, std::vector<std::string>* damaged);
// A measure in the last row: of validation, of training where there is none; nothing where it was not measured.
std::optional<double> LastValue(const MetricsTable& table, const std::string& measure);

}  // namespace mxtrain::report
