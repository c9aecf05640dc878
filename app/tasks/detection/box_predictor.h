// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictions of the objects in an image.
#include <memory>
#include <string>
#include <vector>

#include "app/tasks/prediction.h"

namespace mxtrain::tasks {

// `width`: numbers of an example, rows of a detector. Boxes with a score below `least_score` are
// not predicted. CSV: a line for each box, with its class, score, left, top, right and bottom in
// pixels of the file; one with empty cells for an image without any. `names`: of all classes.
std::unique_ptr<Predictor> NewBoxPredictor(int64_t width, double least_score,
                                           std::vector<std::string> names);

}  // namespace mxtrain::tasks
