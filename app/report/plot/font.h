// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines of text in figures, laid out from the left with the fonts of face.h. Thread-safe.
#include <string>
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
// The same for names, whose ends tell them apart: the ellipsis is in the middle.
std::string FitName(const std::string& name, double size, double width);

}  // namespace mxtrain::plot
