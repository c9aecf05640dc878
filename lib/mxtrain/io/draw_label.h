// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text and boxes on an image, for browsing predictions.
#include <string>

#include "mxtrain/io/image.h"

namespace mxtrain::io {

// Draws a line of text on a dark band along the upper edge; the letters are as large as the width
// allows, up to a twelfth of the height. *image becomes RGB; if its shorter edge is below 128
// pixels, it is first enlarged by an integer factor for legibility, as long as the longer edge
// stays within 4096. Non-ASCII characters become '?'. Throws kData for an empty image.
MXTRAIN_API void DrawLabel(const std::string& text, Image* image);

// Draws the outline of a box, in pixels from the upper left corner, and a text on a band of its
// colour above it, or inside where there is no room above. *image becomes RGB. Lines and letters
// are as large as the image makes them legible; what lies outside of the image is not drawn.
MXTRAIN_API void DrawBox(double left, double top, double right, double bottom, const Rgb& colour,
                         const std::string& text, Image* image);

}  // namespace mxtrain::io
