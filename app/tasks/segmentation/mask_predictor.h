// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictions of a class for each pixel.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/tasks/prediction.h"
#include "mxtrain/base/shape.h"

namespace mxtrain::tasks {

// Writes the classes of a part of the pixels of a file to *mask, an image of its size: scores are
// interpolated between the pixels of the net's output, and the highest is taken; kNoClass
// (io/source.h) where the net did not see the file. `scores`: [classes, h, w] of an example;
// `to_net`: from points of the file to those of the net's image, which has the output's size.
void WriteClassesOfFile(std::span<const float> scores, const TShape& shape,
                        const io::PointMap& to_net, const io::Box& part, io::Image* mask);

// `shape`: [N, classes, h, w], at most 255 classes. CSV: `classes`, those that occur with their
// parts of the image, largest first: "road 0.4512;sky 0.2033".
std::unique_ptr<Predictor> NewMaskPredictor(const TShape& shape, std::vector<std::string> names);

}  // namespace mxtrain::tasks
