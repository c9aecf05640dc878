// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images and masks in folders beside one another, as `init` finds them.
#include <memory>

#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// Recognizes, with other common names for the folders: train/images and train/masks (and the same
// of val), images/train and masks/train, images and masks. Null if the folder holds none of these,
// or no images are in that of the masks. Throws kData for masks that cannot be read as classes.
std::unique_ptr<Recipe> RecognizeMaskFolders(const RecipeRequest& request);

}  // namespace mxtrain::tasks
