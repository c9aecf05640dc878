// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration that `init` writes for images with a class for each pixel.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/tasks/recipe.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::tasks {

// The facts that the choice of net and training depends on.
struct MaskData {
  // The lines of data.train and data.val that name the data; of val empty: a fifth is held out.
  std::string train, val;
  int64_t train_images = 0, val_images = 0;
  io::ImageSize size;                // the medians
  std::vector<std::string> classes;  // names, or numbers
  std::string form;                  // for the summary, how masks say classes: " in colours"

  // Without data for validation: takes its images from those to train on.
  void HoldOut();
};

std::unique_ptr<Recipe> NewMaskRecipe(MaskData data);

}  // namespace mxtrain::tasks
