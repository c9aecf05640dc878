// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text, boxes and legends on an image, for browsing predictions, in the letters of figures
// (plot/font.h).
#include <string>
#include <vector>

#include "mxtrain/io/image.h"

namespace mxtrain::report {

// Draws a line of text on a dark band along the upper edge; the letters are as large as the width
// allows, up to a twelfth of the height, and a text that would be too small to read is shortened in
// the middle. *image becomes RGB; if its shorter edge is below 128 pixels, it is first enlarged by
// an integer factor for legibility, as long as the longer edge stays within 4096. Throws kData for
// an empty image.
void DrawLabel(const std::string& text, io::Image* image);

// In pixels from the upper left corner.
struct LabelledBox {
  double left, top, right, bottom;
  io::Rgb colour;
  std::string text;
};

// Draws the outlines of boxes, the first on top, and the text of each on a band of its colour
// above, inside or below it: the first place that hides no text before it; without one the box has
// no text. *image becomes RGB and is enlarged like that of DrawLabel. Lines and letters are as
// large as the image makes them legible; what lies outside of the image is not drawn. Throws kData
// for an empty image.
void DrawBoxes(const std::vector<LabelledBox>& boxes, io::Image* image);

struct LegendEntry {
  io::Rgb colour;
  std::string text;
};

// Draws each text on a band of its colour, one above the other in the lower left corner, the first
// highest: as many as half the height has room for. *image becomes RGB and is enlarged like that of
// DrawLabel. Throws kData for an empty image.
void DrawLegend(const std::vector<LegendEntry>& entries, io::Image* image);

}  // namespace mxtrain::report
