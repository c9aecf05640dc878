// SPDX-License-Identifier: Apache-2.0
#pragma once
// The font of figures: DejaVu Sans (Debian's fonts-dejavu-core), embedded in the program. Latin,
// Greek, Cyrillic and more; missing characters are drawn as an empty box. Thread-safe.
#include <string_view>
#include <vector>

#include "app/report/plot/drawing.h"

namespace mxtrain::plot {

// Width of one line of UTF-8 text with font size `size`; invalid bytes count as U+FFFD.
double TextWidth(std::string_view text, double size);

// The outlines of a line of text that starts at the origin of the baseline; y goes down. Fill with
// the non-zero winding rule.
std::vector<std::vector<Point>> TextOutline(std::string_view text, double size);

// The text, truncated with an ellipsis if it is wider than `width`.
std::string FitText(const std::string& text, double size, double width);

}  // namespace mxtrain::plot
