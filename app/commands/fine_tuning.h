// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration that `mxtrain init --net` writes: a net that comes with the program, trained on
// a folder of images from published weights, or from scratch.
#include <string>

#include "app/commands/init_config.h"
#include "app/commands/zoo_choice.h"

namespace mxtrain::commands {

// The weights as the configuration names them.
struct WeightsChoice {
  std::string file, sha256;  // no file: from scratch; no sha256: not pinned
  std::string state;         // train.weights.state
  ZooWeights facts;
  bool head_only = false;  // train only the head, on features
};

// Batch: as ChooseTraining. Epochs: 30,000 images in total, within 6 .. 30; 30 of the head alone;
// from scratch as ChooseTraining.
TrainingChoice ChooseFineTuning(const ImageFolder& folder, const ZooNet& net,
                                const WeightsChoice& weights);

// YAML. Paths are written as given; `file` is the name that the user will use for it.
std::string RecipeText(const ImageFolder& folder, const ZooNet& net, const WeightsChoice& weights,
                       const TrainingChoice& choice, const std::string& file);

}  // namespace mxtrain::commands
