// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration that `init` writes for a text, or a folder of texts.
#include <memory>

#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// RecipeRequest::root: a text file, or a folder with .txt files and no images; null for others.
std::unique_ptr<Recipe> RecognizeTexts(const RecipeRequest& request);

}  // namespace mxtrain::tasks
