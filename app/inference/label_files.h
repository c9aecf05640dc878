// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predicted boxes in the forms of labels: to correct them in a labelling tool, and to train on.
#include <memory>
#include <string>
#include <vector>

#include "app/inference/prediction_sinks.h"

namespace mxtrain::inference {

// One object of JSON as COCO's annotations have it, on stdout ("") or into a file: images and
// classes numbered from 1, and annotations, which also have a `score`. Throws kUsage unless there
// is one head, and its predictor has `boxes`.
std::unique_ptr<PredictionSink> NewCocoFile(const std::string& path,
                                            const std::vector<PredictedHead>& heads);

struct ExampleNames {
  std::string file, name;  // as Prediction has them
};
// YOLO's text files below `folder`, where their images are below `images` ("": at their paths as
// these were given), and classes.txt: a line for each box with the number of its class, from 0,
// the centre and the size, as shares of the image's size. Nothing is overwritten: throws kUsage for
// a folder that is not empty, and for two of the `examples` that would have one file; and as
// NewCocoFile.
std::unique_ptr<PredictionSink> NewYoloFolder(const std::string& folder, const std::string& images,
                                              const std::vector<ExampleNames>& examples,
                                              const std::vector<PredictedHead>& heads,
                                              const Logger& log);

}  // namespace mxtrain::inference
