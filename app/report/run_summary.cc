// SPDX-License-Identifier: Apache-2.0
#include "app/report/run_summary.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/report/run_folder.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/train/checkpoint.h"

namespace mxtrain::report {
namespace {

namespace fs = std::filesystem;

// result.json, which `train` writes at its end.
void ReadResult(const std::string& path, RunSummary* run) {
  try {
    const FileJson result = ReadJsonOf(path + " is damaged", ReadFile(path));
    run->state = result.at("stopped").get<bool>()                   ? RunSummary::State::kStopped
                 : result.value("end", std::string()) == "diverged" ? RunSummary::State::kDiverged
                                                                    : RunSummary::State::kFinished;
    const FileJson& best = result.at("best");
    if (best.is_null()) return;
    const FileJson& epoch = best.at("epoch");
    if (!epoch.is_number_integer()) Throw(ErrorKind::kData, "{} is damaged: best.epoch", path);
    run->best = {best.at("metric").get<std::string>(), best.at("value").get<double>(),
                 epoch.get<int64_t>(), best.at("higher_is_better").get<bool>()};
  } catch (const FileJson::exception& e) {
    Throw(ErrorKind::kData, "{} is damaged: {}", path, e.what());
  }
}

// A run without result.json was killed, or is of an older version: read its last checkpoint.
RunSummary::State StateOfCheckpoint(const std::string& path) {
  if (!fs::exists(path)) return RunSummary::State::kBrokenOff;
  try {
    const TrainState state = PeekState(path);
    if (state.total_steps == 0) return RunSummary::State::kUnknown;
    return state.all_steps_made() && !state.open ? RunSummary::State::kFinished
                                                 : RunSummary::State::kBrokenOff;
  } catch (const Error&) {  // damaged, or of an unsupported version
    return RunSummary::State::kUnknown;
  }
}

}  // namespace

const char* NameOf(RunSummary::State state) {
  switch (state) {
    case RunSummary::State::kRunning:
      return "running";
    case RunSummary::State::kFinished:
      return "finished";
    case RunSummary::State::kStopped:
      return "stopped";
    case RunSummary::State::kDiverged:
      return "diverged";
    case RunSummary::State::kBrokenOff:
      return "broken off";
    case RunSummary::State::kUnknown:
      return "unknown";
  }
  return "";
}

RunSummary ReadRun(const std::string& path) {
  if (!IsRunFolder(path))
    Throw(ErrorKind::kFileSystem,
          "{} is not a run folder: no run has written a config.yaml into it", path);
  RunSummary run;
  run.path = path;
  run.metrics = ReadMetrics(path + "/metrics.csv");
  const std::string result = path + "/result.json";
  if (fs::exists(result)) ReadResult(result, &run);
  if (RunFolder::IsBusy(path)) {
    run.state = RunSummary::State::kRunning;
  } else if (!fs::exists(result)) {
    run.state = StateOfCheckpoint(path + "/checkpoints/last");
  }
  for (double seconds : run.metrics.Column("seconds"))
    run.seconds += std::isfinite(seconds) ? seconds : 0;
  const std::vector<double> epochs = run.metrics.Column("epoch");
  if (!epochs.empty()) run.epochs = static_cast<int64_t>(epochs.back());
  return run;
}

std::vector<RunSummary> ReadRuns(const std::string& parent, std::vector<std::string>* damaged) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (entry.is_symlink() || !entry.is_directory()) continue;
    if (IsRunFolder(entry.path())) paths.push_back(entry.path());
    if (!fs::exists(entry.path() / "sweep.json")) continue;
    for (const auto& trial : fs::directory_iterator(entry.path())) {
      if (!trial.is_symlink() && IsRunFolder(trial.path())) paths.push_back(trial.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<RunSummary> runs;
  for (const std::string& path : paths) {
    try {
      runs.push_back(ReadRun(path));
    } catch (const Error& e) {
      damaged->push_back(format("{} cannot be read: {}", path, e.what()));
    }
  }
  return runs;
}

std::optional<double> LastValue(const MetricsTable& table, const std::string& measure) {
  for (const char* prefix : {"val_", "train_"}) {
    const std::vector<double> values = table.Column(prefix + measure);
    if (!values.empty()) return values.back();
  }
  return std::nullopt;
}

}  // namespace mxtrain::report
