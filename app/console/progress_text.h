// SPDX-License-Identifier: Apache-2.0
#pragma once
// A run's progress as text: the parts of the status line, and the lines of an epoch.
#include <cstdint>
#include <string>
#include <vector>

#include "mxtrain/train/events.h"

namespace mxtrain::console {

// In the order of their importance: a narrow terminal drops parts from the end. `examples`: what
// rates count, "images". `trained`: their number in an epoch.
std::vector<std::string> PartsOf(const StepEvent& e, const std::string& examples, int64_t trained);
std::vector<std::string> PartsOf(const ValidationEvent& e, const std::string& examples);

// A loss or metric over so many examples, with as many decimals as they can tell apart, at least
// two and at most four, and at least two digits that are not 0.
std::string ScoreText(double value, int64_t examples);

// The lines of epochs, of at most 100 columns as far as names allow, whose values stand below each
// other.
class EpochLines {
 public:
  // Examples of an epoch.
  EpochLines(int64_t trained, int64_t validated) : trained_(trained), validated_(validated) {}

  // One line, or from the first epoch on that needs more, one for training and one for validation,
  // each continued where necessary. A metric that is the loss is skipped.
  std::vector<std::string> Of(const EpochEvent& e);

 private:
  const int64_t trained_, validated_;
  bool several_ = false;
};

}  // namespace mxtrain::console
