// SPDX-License-Identifier: Apache-2.0
#pragma once
// A folder of images with a folder for each class, as `init` finds it: one folder of such classes,
// or one each for training, validation and test.
#include <memory>

#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// Null if the folder holds no folders. Throws kData for folders that cannot be trained on, and
// warns of images that cannot be read.
std::unique_ptr<Recipe> RecognizeClassFolders(const RecipeRequest& request);

}  // namespace mxtrain::tasks
