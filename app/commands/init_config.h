#pragma once
// The configuration that `mxtrain init` writes: what was found in a folder of pictures, and a text made of it.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mxtrain::commands {

// A folder of pictures, as far as the choice of net and training depends on it.
struct ImageFolder {
  std::string name;                                      // of the run
  std::string train, val;                                // val empty: held out of the training folder
  std::string test;                                      // kept for `eval`, as a user calls it; empty: there is none
  std::vector<std::pair<std::string, int64_t>> classes;  // with their training pictures
  int64_t train_images = 0, val_images = 0;          // what training sees, without what is held out
  double holdout = 0;                                    // part of the training folder that validates, where there is no val
  int channels = 3;
  int min_side = 0, median_side = 0, max_side = 0;  // of the shorter sides, of the pictures that were looked at
};

// What `init` chooses; every number stands in the configuration, to be changed there.
struct TrainingChoice {
  int input_size = 0, batch_size = 0;
  int64_t epochs = 0;
};

// Input size: the median shorter side, at most 128, rounded down to one of 32, 64, 96, 128. Batch: 32, or 16 or 8 where that would leave
// fewer than 10 steps per epoch. Epochs: 90,000 pictures in all, in fives, within 10 .. 60. `input_size` > 0 is taken as given.
TrainingChoice ChooseTraining(const ImageFolder& folder, int input_size);

// YAML. Paths stand as they are given; `file` is how a user will call it.
std::string ConfigText(const ImageFolder& folder, const TrainingChoice& choice, const std::string& file);

}  // namespace mxtrain::commands
