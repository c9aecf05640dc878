// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/detection/found_boxes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/report/annotation.h"
#include "app/tasks/class_colours.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

// The first class is not black.
io::Rgb ColourOfBox(int label) {
  return ColourOfClass(1 + label % 254);
}

}  // namespace

std::vector<FoundBox> BoxesInFile(std::span<const float> rows, const Example& example) {
  const io::ImageOrigin& origin = example.origin();
  const bool of_file = origin.height() > 0;
  const io::PointMap map = of_file ? example.to_file() : io::PointMap();
  constexpr double kFar = std::numeric_limits<float>::max();
  const double width = of_file ? origin.width() : kFar, height = of_file ? origin.height() : kFar;
  std::vector<FoundBox> boxes;
  for (size_t i = 0; i + kFoundColumns <= rows.size(); i += kFoundColumns) {
    const float* const row = &rows[i];
    if (!(row[0] >= 0) || !IsFinite({row, kFoundColumns})) continue;
    double left = kFar, top = kFar, right = -kFar, bottom = -kFar;
    for (const io::Point& corner : {io::Point{row[2], row[3]}, io::Point{row[4], row[3]},
                                    io::Point{row[4], row[5]}, io::Point{row[2], row[5]}}) {
      const io::Point at = map(corner);
      left = std::min(left, at.x), right = std::max(right, at.x);
      top = std::min(top, at.y), bottom = std::max(bottom, at.y);
    }
    if (of_file) {
      left = std::clamp(left, 0.0, width), right = std::clamp(right, 0.0, width);
      top = std::clamp(top, 0.0, height), bottom = std::clamp(bottom, 0.0, height);
    }
    boxes.push_back({static_cast<int>(row[0]), row[1], left, top, right, bottom});
  }
  std::ranges::stable_sort(boxes,
                           [](const FoundBox& a, const FoundBox& b) { return a.score > b.score; });
  return boxes;
}

std::vector<TrueBox> ObjectsOf(std::span<const float> rows, size_t columns) {
  std::vector<TrueBox> objects;
  for (size_t i = 0; i + columns <= rows.size(); i += columns) {
    const io::BoxRow box(&rows[i]);
    if (box.empty()) continue;
    const double area = columns > static_cast<size_t>(io::kBoxColumns) ? rows[i + 6] : -1;
    objects.push_back({static_cast<int>(box.label), box.left, box.top, box.right, box.bottom, area,
                       box.IsFor(io::kCrowdBox), box.IsFor(io::kDifficultBox)});
  }
  return objects;
}

void DrawFound(std::span<const FoundBox> boxes, const ClassNames& names, io::Image* image) {
  std::vector<report::LabelledBox> drawn;  // the best on top
  for (const FoundBox& box : boxes)
    drawn.push_back({box.left, box.top, box.right, box.bottom, ColourOfBox(box.label),
                     format("{} {:.2f}", names[box.label], box.score)});
  report::DrawBoxes(drawn, image);
}

void DrawObjects(std::span<const TrueBox> objects, const ClassNames& names, io::Image* image) {
  std::vector<report::LabelledBox> drawn;
  for (const TrueBox& object : objects) {
    const char* const use = object.crowd ? " (crowd)" : object.difficult ? " (ignored)" : "";
    drawn.push_back({object.left, object.top, object.right, object.bottom,
                     ColourOfBox(object.label), names[object.label] + use});
  }
  report::DrawBoxes(drawn, image);
}

}  // namespace mxtrain::tasks
