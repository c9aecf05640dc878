// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictions of what is written in an image.
#include <memory>
#include <string>
#include <vector>

#include "app/tasks/prediction.h"

namespace mxtrain::tasks {

// `width`: numbers of an example, rows of ctc_greedy_decoder. CSV: the text, and the product of the
// probabilities of its letters.
std::unique_ptr<Predictor> NewLinePredictor(int64_t width, std::vector<std::string> alphabet);

}  // namespace mxtrain::tasks
