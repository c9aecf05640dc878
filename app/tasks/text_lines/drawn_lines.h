// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generated lines of text: words of made-up syllables and numbers, in one font, of any size, angle,
// slant, contrast and noise.
#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// Into FOLDER/train and FOLDER/val, with the texts in FOLDER/train.tsv and FOLDER/val.tsv, columns
// image and text. Images are between 3/8 and 3/4 of `size` pixels high. Throws kUsage for a number
// of classes.
SynthResult SynthesizeLines(const SynthRequest& request);

}  // namespace mxtrain::tasks
