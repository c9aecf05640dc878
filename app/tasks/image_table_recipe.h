// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration that `init` writes for a table with a column of images: a number, a class, or
// any number of classes for each image, from its features and, beside them, from the numbers and
// words of its row.
#include <memory>

#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// What the target's column holds: numbers, a class in each cell, or several with a sign between
// them ("cat;dog").
enum class ImageTarget { kNumbers, kClasses, kSets };

// The table in a file, if a column of it holds paths of images, relative to its folder, and its
// target is of this kind: the column that the request names, else the last one that is not the same
// in every row. Null for another file, and where the first path is that of no file.
// Throws kUsage for a target that there is not, kData for one that cannot be learned.
std::unique_ptr<Recipe> RecognizeImageTable(const RecipeRequest& request, ImageTarget target);

}  // namespace mxtrain::tasks
