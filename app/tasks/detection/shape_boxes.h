// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generated data of detection: images of several shapes, and their boxes.
#include "app/tasks/recipe.h"

namespace mxtrain::tasks {

// Writes train/ and val/, each with images/ and, of the same names, labels/ of text as YOLO has
// them (class, centre and size relative to the image); classes.txt names the classes in the order
// of their numbers. Three classes by default. Throws kUsage for more than there are shapes, and for
// too few images; kFileSystem.
SynthResult SynthesizeBoxes(const SynthRequest& request);

}  // namespace mxtrain::tasks
