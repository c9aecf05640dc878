#pragma once
// The letters of pictures: DejaVu Sans (Debian's fonts-dejavu-core), which the program carries in itself. Latin, Greek, Cyrillic and more;
// a letter that it lacks is drawn as an empty box. Thread-safe.
#include <string_view>
#include <vector>

#include "app/report/plot/drawing.h"

namespace mxtrain::plot {

// Width of one line of UTF-8 in letters of `size` units; bytes that are not UTF-8 count as U+FFFD.
double TextWidth(std::string_view text, double size);

// The outlines of a line that begins at the origin of the base line; y goes down. To be filled by the rule of non-zero winding numbers.
std::vector<std::vector<Point>> TextOutline(std::string_view text, double size);

// The text, with its end replaced by an ellipsis where it is wider than `width`.
std::string FitText(const std::string& text, double size, double width);

}  // namespace mxtrain::plot
