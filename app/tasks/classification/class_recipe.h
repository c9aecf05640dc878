// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration that `mxtrain init` writes, from the facts about a folder of images.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mxtrain::tasks {

// Where images lie: a folder with one folder for each class, or, with `archive`, such a folder in
// an archive, "" for the one that all its images lie in.
struct ImagePlace {
  std::string path;  // as the configuration names it; empty: none
  bool archive = false;
  std::string folder;
  std::vector<std::string> excluded = {};  // folders beside those of the classes
  bool empty() const { return path.empty(); }
};
// Its lines of a configuration: the source, and where it reads.
std::string SourceText(const ImagePlace& place);

// The facts about a folder of images that the choice of net and training depends on.
struct ImageFolder {
  ImagePlace train, val;  // empty val: held out of the training images
  std::string test;       // for `eval`, as the user gave it; empty: none
  std::vector<std::pair<std::string, int64_t>> classes;  // with their numbers of training images
  int64_t train_images = 0, val_images = 0;              // train_images: without held-out ones
  // What is skipped, with the reason: ".trash (hidden)", "notes (no images)".
  std::vector<std::string> skipped = {};
  std::string nested;  // of folders in those of the classes, a part of a sentence; "": none
  std::string within;  // the folder of the classes, if it is one inside the one that was given
  double holdout = 0;  // fraction of the training folder used for validation if there is no val
  int channels = 3;
  int min_side = 0, median_side = 0, max_side = 0;  // of the shorter sides of the sampled images
};

// The choices of `init`; every number is in the configuration and can be changed there.
struct TrainingChoice {
  int input_size = 0, batch_size = 0;
  int64_t epochs = 0;
};

// Input size: the median shorter side, at most 128, rounded down to one of 32, 64, 96, 128. Batch:
// 32, or 16 or 8 where that would leave fewer than 10 steps per epoch. Epochs: 90,000 images in
// total, a multiple of 5, within 10 .. 60. `input_size` > 0 is used as given.
TrainingChoice ChooseTraining(const ImageFolder& folder, int input_size);

// The comments at the head of a configuration, and the key `seed`.
std::string HeadText(const ImageFolder& folder, const std::string& file);

// The layers of a small net for images of this size, up to a row of features for each image, and
// the blocks that they are made of. `input`: the net's input that they read; "": its only one.
std::string SmallTrunkBlocks();
std::string SmallTrunkLayers(int size, const std::string& input);

// YAML. Paths are written as given; `file` is the name that the user will use for it.
std::string ConfigText(const ImageFolder& folder, const TrainingChoice& choice,
                       const std::string& file);

}  // namespace mxtrain::tasks
