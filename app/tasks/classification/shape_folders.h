// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generated data of classification: images of one shape each.
#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// Writes such images into folders of the classes in train/ and val/. Six classes by default. Throws
// kUsage for more than there are shapes, and for too few images; kFileSystem.
SynthResult SynthesizeShapes(const SynthRequest& request);

}  // namespace mxtrain::tasks
