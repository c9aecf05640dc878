// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/run_progress.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"

namespace mxtrain {

RunProgress::RunProgress(Runtime& runtime, const TrainOptions& options, const DataIter& train)
    : runtime_(runtime),
      options_(options),
      examples_per_step_(options.model.batch_size * options.grad_accum),
      steps_per_epoch_(train.batches_per_epoch() / options.grad_accum) {
  if (options.early_stop.patience > 0)
    early_stop_.emplace(options.early_stop.patience, options.early_stop.min_delta);
  if (steps_per_epoch_ < 1) {
    Throw(
        ErrorKind::kData,
        "an epoch of the training data has {} of the {} batches of {} examples that a step takes; "
        "use fewer (grad_accum) or smaller ones (batch_size)",
        train.batches_per_epoch(), options.grad_accum, options.model.batch_size);
  }
  PlanSteps();
  state_.threads = runtime.backend(options.workers[0]).threads();
}

int64_t RunProgress::Position() const {
  return (state_.epoch - state_.first_epoch) * steps_per_epoch_ + state_.step_in_epoch;
}

// The step at which the run ends, from the current state.
void RunProgress::PlanSteps() {
  const int64_t position = Position();
  total_steps_ = state_.step + std::max<int64_t>(options_.epochs * steps_per_epoch_ - position, 0);
  if (options_.max_steps > 0)
    total_steps_ = std::min(total_steps_, state_.first_step + options_.max_steps);
  const int64_t whole = std::max<int64_t>(position + steps_left(), 1);
  schedule_ = LrSchedule::Create(options_.lr_schedule.name, options_.lr_schedule.params,
                                 steps_per_epoch_, whole);
}

std::vector<std::pair<double, int64_t>> RunProgress::StepsOfEpoch() const {
  constexpr int64_t kMost = 32;
  const int64_t steps = state_.step_in_epoch, count = std::min(steps, kMost);
  std::vector<std::pair<double, int64_t>> spread;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t step = count > 1 ? k * (steps - 1) / (count - 1) : 0;
    spread.emplace_back(static_cast<double>(state_.epoch) +
                            static_cast<double>(step) / static_cast<double>(steps_per_epoch_),
                        Position() - steps + step);
  }
  return spread;
}

void RunProgress::AddStep() {
  ++state_.step;
  ++state_.step_in_epoch;
  state_.open = true;
}

void RunProgress::MoveTo(int64_t step_in_epoch) {
  state_.step += step_in_epoch - state_.step_in_epoch;
  state_.step_in_epoch = step_in_epoch;
  state_.examples_in_epoch = step_in_epoch * examples_per_step_;
  state_.open = step_in_epoch > 0;
}

void RunProgress::Unfreeze() {
  state_.unfrozen_step = state_.step;
  if (early_stop_) early_stop_->Restart();
}

int64_t RunProgress::WarmupSteps() const {
  const bool before = state_.first_step > state_.unfrozen_step;  // in an earlier segment
  const int64_t rest = (before ? state_.first_step : total_steps_) - state_.unfrozen_step;
  return std::llround(options_.freeze.warmup * static_cast<double>(rest));
}

bool RunProgress::ReachesTarget(std::optional<double> value, bool higher_is_better) const {
  const std::optional<double>& target = options_.early_stop.target;
  return target && value && (higher_is_better ? *value >= *target : *value <= *target);
}

bool RunProgress::EndEpoch(std::optional<double> value, bool higher_is_better,
                           std::optional<double> loss) {
  const bool complete = epoch_complete();
  state_.open = false;
  if (!complete) return false;
  // Patience is for layers that learn: the run does not end before they do.
  const bool was_frozen = options_.freeze.Unfreezes() && state_.epoch < options_.freeze.epochs;
  ++state_.epoch;
  state_.step_in_epoch = 0;
  state_.examples_in_epoch = 0;
  if (value) {
    schedule_->EndEpoch(*value, higher_is_better);
    const bool exhausted = early_stop_ && early_stop_->Exhausted(*value, higher_is_better, loss);
    state_.ended_early = ((exhausted && !was_frozen) || ReachesTarget(value, higher_is_better)) &&
                         state_.step < total_steps_;
  }
  return true;
}

void RunProgress::Resume(const Checkpoint& checkpoint) {
  const int threads = state_.threads;
  state_ = checkpoint.state;
  state_.threads = threads;
  FindPlace(checkpoint.model.batch_size);
  PlanSteps();
  schedule_->RestoreState(state_.schedule_state);
  if (early_stop_ && !state_.early_stop_state.empty())
    early_stop_->RestoreState(state_.early_stop_state);
}

void RunProgress::Extend(const TrainState& saved) {
  if (!saved.all_steps_made()) {
    Throw(ErrorKind::kUsage,
          "the run is not finished: it has made {} of {} steps; resume it without extending",
          saved.step, saved.total_steps);
  }
  // It may have been stopped between the last step and the end of the epoch.
  state_.first_epoch = state_.epoch + (epoch_complete() ? 1 : 0);
  state_.first_step = state_.step;
  state_.ended_early = false;
  if (early_stop_) early_stop_->Restart();
  PlanSteps();
}

// Restores the position in the epoch, which may have been counted in batches of another size, or in
// steps of another number of batches.
void RunProgress::FindPlace(int64_t batch_size) {
  const int64_t batches = state_.batches_per_step,
                examples = state_.step_in_epoch * batch_size * batches;
  state_.batches_per_step = options_.grad_accum;
  if (batch_size * batches == examples_per_step_) return;
  if (examples % examples_per_step_ != 0) {
    Throw(ErrorKind::kConfig,
          "the checkpoint is inside epoch {}, {} examples after its start, where no {} of {} "
          "starts; resume with "
          "data.batch_size={}{}, or from a checkpoint between two epochs (epoch-{:04})",
          state_.epoch + 1, examples, options_.grad_accum == 1 ? "batch" : "step",
          examples_per_step_, batch_size,
          batches == options_.grad_accum ? "" : format(" train.grad_accum={}", batches),
          std::max<int64_t>(state_.epoch, 1));
  }
  state_.step_in_epoch = std::min(examples / examples_per_step_, steps_per_epoch_);
  runtime_.log("train").Warning(
      "the checkpoint was made with batches of {}, this run has {}: it continues at the same "
      "example, with different steps",
      batch_size * batches, examples_per_step_);
}

TrainState RunProgress::Save() const {
  TrainState state = state_;
  state.total_steps = total_steps_;
  state.batches_per_step = options_.grad_accum;
  state.schedule_state = schedule_->SaveState();
  state.early_stop_state = early_stop_ ? early_stop_->SaveState() : "";
  return state;
}

}  // namespace mxtrain
