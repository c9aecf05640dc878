// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images whose masks are in a file of annotations, as `init` finds them.
#include <memory>

#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// Recognizes COCO's files with segmentations, in the folder or for each of its parts. Null if there
// are none. Throws kData for files that cannot be read, or that have boxes alone.
std::unique_ptr<Recipe> RecognizeAnnotatedMasks(const RecipeRequest& request);

}  // namespace mxtrain::tasks
