// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration that `init` writes for images of lines of text.
#include <memory>

#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// RecipeRequest::root: a table or JSON lines with a column of images (image, file, file_name,
// filename, path) and one of texts (text, transcription, transcript, words), or a folder with such
// a file named train, labels or metadata, perhaps beside one named val, valid, validation, dev or
// test; null for others, and if the first image is not there.
std::unique_ptr<Recipe> RecognizeLines(const RecipeRequest& request);

}  // namespace mxtrain::tasks
