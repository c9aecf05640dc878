// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictions of one class of several, from its scores.
#include <optional>

#include "app/tasks/scored_classes.h"

namespace mxtrain::tasks {

// CSV: predicted, score, and for further classes, up to `top_k`, predicted_2, score_2, ... Where
// scores are not finite there is no class, and the score is nan; in JSON, null. `threshold`, of two
// classes: the second one is predicted from this score on, whichever has the higher one.
std::unique_ptr<Predictor> NewClassPredictor(int64_t classes, std::vector<std::string> names,
                                             int top_k,
                                             std::optional<double> threshold = std::nullopt);

}  // namespace mxtrain::tasks
