#pragma once
// The scale of the loss in float16's training (operator/loss_scale.h), as a run keeps it: its numbers on each device that keeps weights, and the
// arrays that executors read. Every device comes to the same numbers, from the same sums of gradients. A step pushes work to the engine and waits for
// nothing.
#include <vector>

#include "mxtrain/operator/imperative.h"

namespace mxtrain {

struct LossScaleState {
  double scale = 1;
  int64_t good_steps = 0;      // since the scale changed, or a step was left out
  int64_t steps_left_out = 0;  // in all
  int64_t at_lowest = 0;       // of these, with nothing left to lower
  bool operator==(const LossScaleState&) const = default;
};

class MXTRAIN_API LossScale {
 public:
  // `devices`: those of OptimizerUpdater; `of_workers`: Executor::loss_scale() of each: at least one on each of `devices`, others follow the
  // first device.
  LossScale(Runtime& runtime, const std::vector<Context>& devices, const std::vector<NDArray>& of_workers, const LossScaleState& first);

  // A scale for the first steps: 2^16 for gradients of means, as is usual, and so less for sums, which `rescale_grad` (1 / batch) turns into means.
  // A power of two.
  static double First(double rescale_grad);

  // Takes the scale out of this step's numbers of updates on a device, and finds the next step's: _loss_scale_update. `sums`: float64 [N], the sums
  // of squares of all gradients.
  void Update(size_t device, const NDArray& sums, const NDArray& scalars);

  LossScaleState Read() const;  // waits for what was pushed
  void Write(const LossScaleState& state);

 private:
  struct Device {
    NDArray state;                // of the operator
    std::vector<NDArray> scales;  // of the workers that take theirs from here; the operator writes the first, the rest are copied
    std::optional<PreparedCall> update;
  };
  std::vector<Device> devices_;
};

}  // namespace mxtrain
