// SPDX-License-Identifier: Apache-2.0
#pragma once
// Events of a run for listeners (console, CSV, JSON lines). Called on the training thread, in
// order. An exception from a listener ends the run.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

using NamedValues = std::vector<std::pair<std::string, double>>;

struct RunStart {
  int64_t parameters = 0;           // elements of all arguments except inputs
  int64_t learning_parameters = 0;  // of those with a gradient
  int64_t train_examples = 0, val_examples = 0;
  int64_t steps_per_epoch = 0, total_steps = 0, first_step = 0;
  int64_t arena_bytes = 0, parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0,
          average_bytes = 0;
  double rescale_grad = 1;
  std::string rescale_reason;
};

struct StepEvent {
  int64_t epoch = 0, step = 0, step_in_epoch = 0;  // counted from 0
  int64_t steps_per_epoch = 0, total_steps = 0;
  double lr = 0;
  double loss = 0;               // mean over the epoch so far
  double recent_loss = 0;        // mean since the last StepEvent in this epoch
  double images_per_second = 0;  // since the last event of this kind
  // Fraction of that time without a batch to compute: the next was not ready.
  double wait_share = 0;
  int64_t epochs = 0;  // that the run has when it is complete
  // Until the end of the epoch and of the run, with what validation and saves are expected to take.
  double seconds = 0, epoch_seconds_left = 0, seconds_left = 0;
};

// During validation: at its start, then at most every TrainOptions::report_seconds.
struct ValidationEvent {
  int64_t epoch = 0, epochs = 0;    // as in StepEvent
  int64_t examples = 0, total = 0;  // validated so far, and all
  double seconds_left = 0;          // of the validation; 0 at its start
  double run_seconds_left = 0;
  double done = 0;  // fraction of the steps of the run
};

struct EpochEvent {
  int64_t epoch = 0, step = 0;  // completed
  int64_t epochs = 0;           // that the run has when it is complete
  double lr = 0, seconds = 0, images_per_second = 0;
  // (epochs done, learning rate) of steps spread over the epoch, including the first and the last.
  std::vector<std::pair<double, double>> rates;
  NamedValues train, val;  // "loss", then the metrics; val is empty without validation data
  bool best = false;
  double loss_scale = 0;      // when training in float16; 0: none
  int64_t steps_skipped = 0;  // in the run so far, for overflowing gradients
  // Seconds for which each rank waited for others or for the wire; in dist_async where all meet.
  std::vector<double> waiting;
  // Of dist_async: how many updates of parameters were computed from values that so many updates by
  // other ranks, from 0 to the most that there were, had changed meanwhile.
  std::vector<int64_t> staleness;
};

struct SaveEvent {
  std::string file;
  int64_t epoch = 0, step = 0;
  double seconds = 0;
};

class MXTRAIN_API TrainListener {
 public:
  virtual ~TrainListener() = default;
  virtual void OnStart(const RunStart&) {}
  virtual void OnStep(const StepEvent&) {}
  virtual void OnValidation(const ValidationEvent&) {}
  virtual void OnEpoch(const EpochEvent&) {}
  virtual void OnSave(const SaveEvent&) {}
  virtual void OnWarning(const std::string&) {}
};

}  // namespace mxtrain
