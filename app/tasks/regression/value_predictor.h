// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictions that are numbers.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/tasks/prediction.h"
#include "mxtrain/base/standardization.h"

namespace mxtrain::tasks {

// Longest list that is written as text.
inline constexpr int64_t kMostValues = 256;

// CSV: predicted_NAME for each. `names`: of the numbers, if there is one for each; else they are
// "value" or "value_1", ... `units`: of those that the net learned standardized.
std::unique_ptr<Predictor> NewValuePredictor(int64_t width, std::vector<std::string> names,
                                             std::optional<Standardization> units);

}  // namespace mxtrain::tasks
