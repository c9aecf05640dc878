// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plots of a run: plots/loss, plots/metrics and plots/learning_rate, each as SVG and PNG, drawn
// from metrics.csv and events.jsonl, and therefore including the time before a resume.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "app/report/metrics_table.h"
#include "app/report/plot/drawing.h"
#include "mxtrain/train/events.h"

namespace mxtrain::report {

// The learning rate by epoch, several points each, from events.jsonl; a repeated epoch replaces
// earlier points. Empty if the file is missing or of a version without rates.
std::vector<plot::Point> ReadRates(const std::string& events_file);
// By file name; empty without rows. Without `rates`, draws those of metrics.csv, at the ends of
// epochs.
std::vector<std::pair<std::string, plot::Drawing>> DrawRun(const MetricsTable& table,
                                                           const std::vector<plot::Point>& rates);
// Draws them into RUN/plots. Throws kFileSystem.
void SaveRunPlots(const std::string& run_folder);

// Keeps the plots up to date during a run, in at most a hundredth of its time: after the checkpoint
// of an epoch, which has priority for disk space, or, if none is saved, after the next epoch.
// metrics.csv must be written before.
class PlotListener final : public TrainListener {
 public:
  explicit PlotListener(std::string run_folder) : run_folder_(std::move(run_folder)) {}
  void OnEpoch(const EpochEvent& epoch) override;
  void OnSave(const SaveEvent& save) override;

 private:
  void Draw();

  using Time = std::chrono::steady_clock;
  const std::string run_folder_;
  bool behind_ = false;  // an epoch has ended since the last drawing
  Time::time_point due_ = Time::now() + std::chrono::seconds(5);
};

}  // namespace mxtrain::report
