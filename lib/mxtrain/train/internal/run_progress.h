// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a run is, where it ends, and the learning rate schedule between. Steps and epochs count
// completed ones. Used by the training thread.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "mxtrain/optimizer/lr_schedule.h"
#include "mxtrain/optimizer/patience.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain {

class RunProgress {
 public:
  // At the beginning of a run. Runtime and options must outlive it. Throws kData if the data hold
  // fewer examples than one step takes.
  RunProgress(Runtime& runtime, const TrainOptions& options, const DataIter& train);

  const TrainState& state() const { return state_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t total_steps() const { return total_steps_; }
  // Of the parameters that begin to learn in step unfrozen_step: over how many steps their rate
  // rises. In a run that was extended afterwards, as it was before.
  int64_t WarmupSteps() const;
  int64_t steps_left() const { return total_steps_ - state_.step; }
  // That the run has when all its steps are made, the last perhaps in part.
  int64_t epochs() const {
    return state_.epoch +
           (state_.step_in_epoch + steps_left() + steps_per_epoch_ - 1) / steps_per_epoch_;
  }
  int64_t examples_per_step() const { return examples_per_step_; }
  bool all_steps_made() const { return state_.step >= total_steps_ || state_.ended_early; }
  bool finished() const { return all_steps_made() && !state_.open; }
  bool epoch_complete() const { return state_.step_in_epoch >= steps_per_epoch_; }

  // Completed steps of the current segment, in batches of the current size, as counted by the
  // schedule. If the batch size changed, the actual number differs.
  int64_t Position() const;
  const LrSchedule& schedule() const { return *schedule_; }
  // Steps spread over the current epoch so far, including the first and the last: the epochs done
  // before each, and its position.
  std::vector<std::pair<double, int64_t>> StepsOfEpoch() const;

  void AddBatch(int64_t examples) { state_.examples_in_epoch += examples; }
  void AddStep();
  // Ends the current epoch, or only closes it if some of its steps are missing: a run that was
  // ended there by max_steps or a time limit keeps its position, so a longer run can continue from
  // it. `value`: of the first of best_metrics; decides whether the run ends early, with `loss`
  // where values are equal. Returns whether the epoch was complete.
  bool EndEpoch(std::optional<double> value, bool higher_is_better, std::optional<double> loss);
  // Parameters that were frozen so far learn from here on; early stopping counts anew.
  void Unfreeze();
  bool ReachesTarget(std::optional<double> value, bool higher_is_better) const;

  // Continues from a checkpoint; it may have been made with batches of another size. Throws kConfig
  // if no step of this size starts there.
  void Resume(const Checkpoint& checkpoint);
  // After Resume of a finished run, whose state was `saved`: continues for as many epochs and steps
  // again, with a new schedule. Throws kUsage if the run was not finished.
  void Extend(const TrainState& saved);
  // Counts so many steps of the current epoch, as if all ranks had made them alike.
  void MoveTo(int64_t step_in_epoch);
  // The state for a checkpoint, as far as it is this class's.
  TrainState Save() const;

 private:
  void PlanSteps();
  void FindPlace(int64_t batch_size);

  Runtime& runtime_;
  const TrainOptions& options_;
  const int64_t examples_per_step_, steps_per_epoch_;
  int64_t total_steps_ = 0;
  TrainState state_;  // its counts; what belongs to other classes is empty or of the checkpoint
  std::unique_ptr<LrSchedule> schedule_;
  std::optional<Patience> early_stop_;
};

}  // namespace mxtrain
