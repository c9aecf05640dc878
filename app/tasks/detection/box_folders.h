// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with boxes of objects, as `init` finds them.
#include <memory>

#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// Recognizes data of any source whose labels are boxes: in the folder itself, in its parts (train/
// and val/, or named alike), in the parts of its images (images/train, images/val), or of
// annotations in files of their own named so (annotations/instances_train2017.json). Null if there
// are none.
std::unique_ptr<Recipe> RecognizeBoxFolders(const RecipeRequest& request);

}  // namespace mxtrain::tasks
