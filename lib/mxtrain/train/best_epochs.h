#pragma once
// Which epochs are the best so far, by one metric or several: what the checkpoints `best` and best-METRIC hold.
#include <string>
#include <vector>

#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain {

class MXTRAIN_API BestEpochs {
 public:
  // Metrics by their names in reports; "loss" is legal. Throws kConfig for one that is not measured, with the nearest.
  BestEpochs(const std::vector<std::string>& metrics, const MetricSet& measured);

  // Takes in an epoch (counted from 1): the names of the checkpoints that it earns, `best` by the first metric, best-METRIC by each other one.
  // A value that is not finite earns nothing.
  std::vector<std::string> Update(int64_t epoch, const NamedValues& values);

  const std::vector<BestValue>& values() const { return best_; }
  const BestValue& first() const { return best_[0]; }
  bool HigherIsBetter() const { return higher_is_better_[0]; }  // of the first
  // Of metrics that were followed before; the others begin anew.
  void Restore(const std::vector<BestValue>& saved);

 private:
  std::vector<BestValue> best_;
  std::vector<bool> higher_is_better_;
};

// The value of this name, if there is one.
MXTRAIN_API std::optional<double> FindValue(const NamedValues& values, const std::string& name);

}  // namespace mxtrain
