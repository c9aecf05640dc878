// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generated data of segmentation: images of several shapes, and masks.
#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// Writes images and, of the same names, indexed PNG into train/ and val/, each with images/ and
// masks/; classes.txt names the classes in the order of their numbers, of which the first is the
// background. Four classes by default. Throws kUsage for more than there are shapes, and for too
// few images; kFileSystem.
SynthResult SynthesizeMasks(const SynthRequest& request);

}  // namespace mxtrain::tasks
