// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracks the best epochs so far, by one or several metrics, for the checkpoints `best` and
// best-METRIC.
#include <string>
#include <vector>

#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain {

class MXTRAIN_API BestEpochs {
 public:
  // Metrics by their names in reports, or "loss". Throws kConfig for one that is not measured, with
  // the nearest name.
  BestEpochs(const std::vector<std::string>& metrics, const MetricSet& measured);

  // Adds an epoch (counted from 1) and returns the checkpoints to write: `best` for the first
  // metric, best-METRIC for the others. Non-finite values are never best, nor is an epoch whose
  // "loss" is not finite; of equal ones, common with few examples, that of the lowest "loss" is.
  std::vector<std::string> Update(int64_t epoch, const NamedValues& values);

  const std::vector<BestValue>& values() const { return best_; }
  const BestValue& first() const { return best_[0]; }
  bool HigherIsBetter() const { return higher_is_better_[0]; }  // of the first
  // Restores metrics tracked before; the others start without a best value.
  void Restore(const std::vector<BestValue>& saved);

 private:
  std::vector<BestValue> best_;
  std::vector<bool> higher_is_better_;
};

// The loss that decides between equal values of a metric; none if it is not finite. Rounded to
// float32: ranks add it in another order than one process does, and should decide alike.
MXTRAIN_API std::optional<double> TieBreakingLoss(const NamedValues& values);

// False where there is no value.
MXTRAIN_API bool IsNotFinite(const std::optional<double>& value);

// The value with this name, if any.
MXTRAIN_API std::optional<double> FindValue(const NamedValues& values, const std::string& name);

}  // namespace mxtrain
