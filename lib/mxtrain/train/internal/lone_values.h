// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batch normalization over a single value per channel: the value is its own mean, so the output is
// beta whatever the input, and no gradient passes. It happens where a part of a batch has one
// example and the layer one position.
#include <span>

#include "mxtrain/io/data_iter.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain {

// Throws kConfig with the layers of `net` that would be trained so, their places and shapes.
// `arrays`: as of TrainingRequest.
MXTRAIN_API void RequireSeveralValues(const TrainOptions& options, const Symbol& net,
                                      std::span<const DataDesc> arrays);

}  // namespace mxtrain
