// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long the rest of a run will take. Used by the training thread.
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace mxtrain {

class TimeLeft {
 public:
  // `validation`: the validation examples for each training example, 0 without validation.
  TimeLeft(int64_t steps_per_epoch, double validation)
      : assumed_(static_cast<double>(steps_per_epoch) * validation / kStepsOfForward) {}

  // Training time of so many steps, since the last call. Steps of a machine that is busy with other
  // things move the estimate slowly: its memory is a third of the time trained so far.
  void AddSteps(int64_t steps, double seconds) {
    if (steps <= 0) return;
    const double now = seconds / static_cast<double>(steps);
    trained_ += seconds;
    // The first steps are slower.
    const double weight =
        ++calls_ <= 2 ? 1 : 1 - std::exp(-seconds / std::max(kLeastMemory, trained_ / 3));
    of_step_ += weight * (now - of_step_);
  }
  // What validation, saves and reports of an epoch took that has ended.
  void AddEpoch(double seconds) {
    of_epoch_ = epochs_++ == 0 ? seconds : (of_epoch_ + seconds) / 2;
  }

  // Seconds for so many steps, and for so many ends of epochs. Until the first end of an epoch
  // validation is assumed to take a third of the time of as many examples in training.
  double Of(int64_t steps, int64_t ends_of_epochs) const {
    const double of_end = epochs_ > 0 ? of_epoch_ : assumed_ * of_step_;
    return static_cast<double>(steps) * of_step_ + static_cast<double>(ends_of_epochs) * of_end;
  }

 private:
  // A training step does the work of a forward pass three times.
  static constexpr double kStepsOfForward = 3, kLeastMemory = 2;  // the second in seconds

  const double assumed_;  // steps that take as long as the end of an epoch
  double trained_ = 0, of_step_ = 0, of_epoch_ = 0;
  int64_t calls_ = 0, epochs_ = 0;
};

}  // namespace mxtrain
