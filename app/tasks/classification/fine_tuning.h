// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration that `mxtrain init --net` writes: a net that comes with the program, trained on
// a folder of images from published weights, or from scratch.
#include <string>

#include "app/tasks/classification/class_recipe.h"
#include "app/tasks/published_net.h"

namespace mxtrain::tasks {

// Batch: as ChooseTraining. Epochs: 30,000 images in total, within 6 .. 30; 30 of the head alone;
// from scratch as ChooseTraining.
TrainingChoice ChooseFineTuning(const ImageFolder& folder, const ZooNet& net,
                                const WeightsChoice& weights);

// The same for so many images with `weights`, whose epochs these are.
int64_t EpochsOfFineTuning(int64_t images);

// How a net with published weights learns, lines of `train`: the optimizer, its schedule, and the
// averages of the weights. Whatever train.epochs is, the rates rise and fall within it.
std::string LearningText(const ZooNet& net, bool head_only, int batch_size);

// "interpolation: bicubic, antialias: true", as the weights were trained.
std::string ResamplingText(const WeightsChoice& weights);

// YAML. Paths are written as given; `file` is the name that the user will use for it.
std::string RecipeText(const ImageFolder& folder, const ZooNet& net, const WeightsChoice& weights,
                       const TrainingChoice& choice, const std::string& file);

}  // namespace mxtrain::tasks
