// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts epochs without improvement over the best so far: lowers the rate of schedule `plateau` and
// ends a run early.
#include <cstdint>
#include <optional>
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

class MXTRAIN_API Patience {
 public:
  // `patience`: consecutive epochs without improvement. An improvement exceeds `min_delta`, or
  // equals the best value with a lower loss; a non-finite value is none.
  Patience(int64_t patience, double min_delta) : patience_(patience), min_delta_(min_delta) {}

  // Records the value of an epoch, and its loss if that breaks ties. Returns true when the patience
  // is exhausted.
  bool Exhausted(double value, bool higher_is_better, std::optional<double> loss = std::nullopt);
  void Restart() { waited_ = 0; }  // resets the count; the best stays
  int64_t waited() const { return waited_; }

  // Exact, as text.
  std::string SaveState() const;
  void RestoreState(const std::string& text);  // throws kData

 private:
  int64_t patience_;
  double min_delta_;
  std::optional<double> best_, loss_;  // the loss that came with the best value
  int64_t waited_ = 0;
};

}  // namespace mxtrain
