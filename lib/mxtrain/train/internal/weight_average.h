// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exponential moving averages of weights and auxiliary states (batch norm statistics), used by
// evaluation:
//   a <- d a + (1 - d) w   after update t = 0, 1, ..., with d = min(decay, t / (t + 9))
// d rises as in TensorFlow's ExponentialMovingAverage, (1 + n) / (10 + n), but from 0: the first
// average equals the weights. Batch norm statistics are averaged by the same rule, as in timm's
// ModelEma.
//
// Used by the training thread; an update pushes one engine operation for all arrays of a type and
// allocates nothing.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/ndarray/staged_array.h"
#include "mxtrain/operator/imperative.h"

namespace mxtrain {

class MXTRAIN_API WeightAverage {
 public:
  // `values`: the arrays to average, by name; kept. Averages have the same layouts.
  WeightAverage(Runtime& runtime, double decay, const std::map<std::string, NDArray>& values);

  // After the update of a step.
  void Update();
  // Swaps averages and values during its lifetime. No effect before the first update, or for null.
  class InUse {
   public:
    explicit InUse(WeightAverage* average)
        : average_(average && average->updates_ > 0 ? average : nullptr) {
      if (average_) average_->Exchange();
    }
    ~InUse() {
      if (average_) average_->Exchange();
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    WeightAverage* average_;
  };

  int64_t updates() const { return updates_; }
  std::map<std::string, NDArray> Arrays() const;  // by the names of the values
  // Restores averages saved after `updates` updates. Missing ones start from the values if
  // `may_lack`. Throws kConfig for an array that is missing otherwise, or of another shape.
  void Restore(const std::map<std::string, NDArray>& saved, int64_t updates, bool may_lack);

 private:
  void Exchange();

  struct Item {
    std::string name;
    NDArray value, average;
  };
  PreparedCall UpdateOf(DType type) const;

  Runtime& runtime_;
  double decay_;
  StagedArray scalars_;  // of the update operator: one row per array, all equal
  std::vector<Item> items_;
  std::vector<PreparedCall> updates_of_types_;  // one per type, for all its items
  int64_t updates_ = 0;
};

}  // namespace mxtrain
