// SPDX-License-Identifier: Apache-2.0
#pragma once
// Listeners that write files into the run folder.
#include <optional>
#include <string>
#include <utility>

#include "app/report/event_file.h"
#include "app/report/run_folder.h"
#include "mxtrain/base/file.h"
#include "mxtrain/train/events.h"

namespace mxtrain::report {

// metrics.csv: one row per epoch. A resumed run replaces the rows of epochs that it repeats.
class CsvListener final : public TrainListener {
 public:
  explicit CsvListener(std::string path) : path_(std::move(path)) {}
  void OnEpoch(const EpochEvent& epoch) override;

 private:
  std::string path_;
};

// The version of events.jsonl, in the event "start". Increased when a field is removed or changes
// its meaning, not for new fields.
inline constexpr int kEventsSchema = 1;

// events.jsonl: one object per line with "event" and "time" (seconds since 1970). A resumed run
// appends. Events and their fields are those of mxtrain/train/events.h:
//   start    schema, parameters, train_examples, val_examples, steps_per_epoch, total_steps,
//            first_step, *_bytes
//   step     epoch (counted from 0), step, loss (mean over the epoch so far), recent_loss (since
//            the event before it), lr, images_per_second, wait_share
//   epoch    epoch and step (completed), lr, rates ([epochs done, lr] of steps spread over the
//            epoch), seconds, images_per_second, train {}, val {}, best; in float16 loss_scale,
//            steps_left_out
//   save     file, epoch, step, seconds
//   warning  text
class JsonlListener final : public TrainListener {
 public:
  explicit JsonlListener(const std::string& path);  // throws kFileSystem
  void OnStart(const RunStart& start) override;
  void OnStep(const StepEvent& step) override;
  void OnEpoch(const EpochEvent& epoch) override;
  void OnSave(const SaveEvent& save) override;
  void OnWarning(const std::string& text) override;

 private:
  FileAppender file_;
};

// runs/latest: this run, from its first save on.
class LatestListener final : public TrainListener {
 public:
  explicit LatestListener(RunFolder folder) : folder_(std::move(folder)) {}
  void OnSave(const SaveEvent&) override {
    if (!std::exchange(told_, true)) folder_.BecomeLatest();
  }

 private:
  const RunFolder folder_;
  bool told_ = false;
};

// RUN/tb: files for TensorBoard. Scalars of steps (step/...) and of epochs (train/..., val/...,
// epoch/...), over the steps; the images of RUN/samples, at the start of a run.
class TensorBoardListener final : public TrainListener {
 public:
  explicit TensorBoardListener(std::string run_folder) : run_folder_(std::move(run_folder)) {}
  void OnStart(const RunStart& start) override;
  void OnStep(const StepEvent& step) override;
  void OnEpoch(const EpochEvent& epoch) override;

 private:
  const std::string run_folder_;
  std::optional<EventFile> file_;  // open from the start of the run
};

// Forwards every event to several listeners; does not own them.
class Listeners final : public TrainListener {
 public:
  void Add(TrainListener* listener) { listeners_.push_back(listener); }
  void OnStart(const RunStart& e) override;
  void OnStep(const StepEvent& e) override;
  void OnValidation(const ValidationEvent& e) override;
  void OnEpoch(const EpochEvent& e) override;
  void OnSave(const SaveEvent& e) override;
  void OnWarning(const std::string& text) override;

 private:
  std::vector<TrainListener*> listeners_;
};

}  // namespace mxtrain::report
