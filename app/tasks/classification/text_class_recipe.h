// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration that `init` writes for a file of texts with classes, or a folder of such.
#include <memory>

#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// Null for a file that is not a table of texts and labels, or JSON lines of them, and for a folder
// without one such file that is named for training (io::TrainingTextsIn). The validation
// data is the file beside it that is named validation, val, valid, dev or test in place of train,
// else a tenth of the texts. Throws kData for such a file that cannot be read.
std::unique_ptr<Recipe> RecognizeClassTexts(const RecipeRequest& request);

}  // namespace mxtrain::tasks
