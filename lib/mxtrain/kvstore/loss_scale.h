// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dynamic loss scaling for training in float16 (operator/loss_scale.h): the state on each device
// that keeps weights, and the arrays that executors read. All devices compute the same state from
// the same sums of gradients. A step pushes work to the engine and does not wait.
#include <vector>

#include "mxtrain/operator/imperative.h"

namespace mxtrain {

struct LossScaleState {
  double scale = 1;
  int64_t good_steps = 0;     // since the scale changed or a step was skipped
  int64_t steps_skipped = 0;  // in all
  int64_t at_lowest = 0;      // of these, at the lowest scale
  bool operator==(const LossScaleState&) const = default;
};

class MXTRAIN_API LossScale {
 public:
  // `devices`: those of OptimizerUpdater; `of_workers`: each worker's Executor::loss_scale(), at
  // least one on each of `devices`; others follow the first device.
  LossScale(Runtime& runtime, const std::vector<Context>& devices,
            const std::vector<NDArray>& of_workers, const LossScaleState& first);

  // Initial scale, a power of two: the usual 2^16 for gradients of means, less for sums, which
  // `rescale_grad` (1 / batch) turns into means.
  static double First(double rescale_grad);

  // Removes the scale from this step's update scalars on a device and computes the next scale
  // (_loss_scale_update). `sums`: float64 [N], sums of squares of all gradients.
  void Update(size_t device, const NDArray& sums, const NDArray& scalars);

  LossScaleState Read() const;  // waits for what was pushed
  void Write(const LossScaleState& state);

 private:
  struct Device {
    NDArray state;  // of the operator
    // Of the workers served by this device; the operator writes the first, the rest are copies.
    std::vector<NDArray> scales;
    std::optional<PreparedCall> update;
  };
  std::vector<Device> devices_;
};

}  // namespace mxtrain
