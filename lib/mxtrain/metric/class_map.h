// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predicted classes of the pixels of an image.
#include <cstdint>
#include <span>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Of each pixel the class with the highest score, of equal scores the first; -1 where a score is a
// NaN. `scores`: [classes, pixels]; `guesses`: [pixels].
MXTRAIN_API void BestClasses(std::span<const float> scores, int64_t classes,
                             std::span<int32_t> guesses);

}  // namespace mxtrain
