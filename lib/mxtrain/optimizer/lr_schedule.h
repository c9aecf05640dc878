// SPDX-License-Identifier: Apache-2.0
#pragma once
// Learning rate per step. A function of the step alone, so resuming needs no state, except for
// plateau, whose state is saved.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/params.h"

namespace mxtrain {

class MXTRAIN_API LrSchedule {
 public:
  // constant; step (every, factor); multistep (milestones, factor); exponential (every, factor),
  // which decays smoothly by the factor in each `every`; cosine, linear (final) and poly (power,
  // final), which decay until the last step; one_cycle (rise, start, final, curve), which rises
  // first; plateau (factor, patience, min_delta, cooldown, min), which decays when epochs bring no
  // improvement. `every` and `milestones` count epochs if `unit` is epochs (the default), else
  // steps. Every schedule except one_cycle takes warmup_epochs or warmup_steps, and warmup_from (a
  // factor of the base rate, 0 by default): a linear warm-up to the base rate.
  static std::unique_ptr<LrSchedule> Create(std::string_view name, const Kwargs& kwargs,
                                            int64_t steps_per_epoch, int64_t total_steps);
  static std::vector<std::string> Names();
  static std::vector<FieldInfo> Describe(std::string_view name);
  virtual ~LrSchedule() = default;

  // Factor of the base learning rate for the step with this number (0 is the first).
  double Factor(int64_t step) const;

  // Whether it depends on the end of the run, so that a shortened run misses its low rates.
  virtual bool SpansRun() const { return false; }
  // Passes the result of an epoch after its last step.
  virtual void EndEpoch(double /*value*/, bool /*higher_is_better*/) {}
  // Exact, as text; empty without state. Rejects the text of another schedule.
  virtual std::string SaveState() const { return ""; }
  virtual void RestoreState(const std::string& /*text*/) {}

 protected:
  // Without the warm-up.
  virtual double Shape(int64_t step) const = 0;
  int64_t warmup_steps_ = 0;
  double warmup_from_ = 0;
};

}  // namespace mxtrain
