// SPDX-License-Identifier: Apache-2.0
#pragma once
// train.monitor: statistics of what a net computes while it trains, as a table, monitor.csv, and as
// curves, plots/monitor. One row for each array whose name matches, in steps 1, 1 + every, ...:
//
//   step,name,rms,min,max
//   1,fc1_output,0.0512,...
//
// A resumed run continues the table and replaces the rows of steps that it repeats.
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/train/events.h"
#include "mxtrain/train/watch.h"

namespace mxtrain::report {

// Rows of a table that are computed by threads of the engine, until they are written.
class MonitorRows {
 public:
  // Of StatisticNames().
  explicit MonitorRows(std::vector<std::string> statistics);
  const std::vector<std::string>& statistics() const { return statistics_; }
  void Add(int64_t step, const std::string& name, const TBlob& value);  // thread-safe
  size_t waiting() const;  // rows since the last Take; thread-safe
  // The rows since the last call, by step and name, as text. Thread-safe.
  std::string Take();

 private:
  struct Row {
    int64_t step;
    std::string name, values;
  };
  const std::vector<std::string> statistics_;
  std::vector<size_t> columns_;  // their places in StatisticNames()
  mutable Mutex mutex_;
  std::vector<Row> rows_ MXTRAIN_GUARDED_BY(mutex_);
};

// Writes the rows after each epoch, with each checkpoint and when many wait, and at its end the
// curves.
class MonitorListener final : public TrainListener {
 public:
  MonitorListener(std::string run_folder, std::shared_ptr<MonitorRows> rows);
  void OnStart(const RunStart& start) override;
  void OnStep(const StepEvent&) override;
  void OnEpoch(const EpochEvent&) override { Write(); }
  void OnSave(const SaveEvent&) override { Write(); }
  // Writes what is left, as that of the step that diverged. Throws kFileSystem.
  void Finish();

 private:
  void Write();

  const std::string run_folder_;
  const std::shared_ptr<MonitorRows> rows_;
};

// plots/monitor from monitor.csv: a chart for each statistic, a curve for each of the first 12
// names.
void SaveMonitorPlot(const std::string& run_folder);

}  // namespace mxtrain::report
