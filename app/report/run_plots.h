// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plots of a run: plots/loss, plots/metrics and plots/learning_rate, each as SVG and PNG, drawn
// from metrics.csv and events.jsonl, and therefore including the time before a resume.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/report/metrics_table.h"
#include "app/report/plot/chart.h"
#include "mxtrain/train/events.h"

namespace mxtrain::report {

// What events.jsonl has of a run between the ends of its epochs, over the epochs done. Of what was
// repeated after a resume, the last repetition. Empty if the file is missing or of a version
// without it.
struct StepCurves {
  std::vector<plot::Point> rates;  // learning rates, several for each epoch
  std::vector<plot::Point>
      losses;  // of training, each since the one before it; at most some hundred
};
StepCurves ReadSteps(const std::string& events_file);

// The charts of a run: its loss, each metric, and the learning rate (where there are no rates of
// steps, at the ends of epochs). Empty without rows.
struct RunCharts {
  std::optional<plot::Chart> loss, rate;
  std::vector<plot::Chart> metrics;
};
RunCharts ChartsOf(const MetricsTable& table, const StepCurves& steps);
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
