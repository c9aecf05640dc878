#pragma once
// Counts epochs that were no better than the best before them: what lowers the rate of the schedule `plateau`, and what ends a run early.
#include <cstdint>
#include <optional>
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

class MXTRAIN_API Patience {
 public:
  // `patience`: epochs in a row without improvement. An improvement is one by more than `min_delta`; a value that is not finite is none.
  Patience(int64_t patience, double min_delta) : patience_(patience), min_delta_(min_delta) {}

  // Takes in the value of an epoch. True when the patience is at its end.
  bool Exhausted(double value, bool higher_is_better);
  void Restart() { waited_ = 0; }  // counts anew; the best stays
  int64_t waited() const { return waited_; }

  // Exact, as text.
  std::string SaveState() const;
  void RestoreState(const std::string& text);  // throws kData

 private:
  int64_t patience_;
  double min_delta_;
  std::optional<double> best_;
  int64_t waited_ = 0;
};

}  // namespace mxtrain
