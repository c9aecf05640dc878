// SPDX-License-Identifier: Apache-2.0
#pragma once
// Classes of pixels as colours.
#include "mxtrain/io/image.h"

namespace mxtrain::tasks {

// The colour of a class: of the table that the Pascal VOC challenge used, whose bits are spread
// over the channels so that neighbours differ; kNoClass (io/source.h) is light.
io::Rgb ColourOfClass(int k);
const io::Palette& ClassPalette();

// Half of each colour of the image is that of its pixel's class. `classes`: gray, of the image's
// size; kNoClass leaves the image as it is. Gray images become RGB.
void PaintClasses(const io::Image& classes, io::Image* image);

}  // namespace mxtrain::tasks
