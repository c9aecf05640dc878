// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/box_labels.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::io {
namespace {

Point Lowest(std::span<const Point> points) {
  Point p = points[0];
  for (const Point& other : points) p = {std::min(p.x, other.x), std::min(p.y, other.y)};
  return p;
}
Point Highest(std::span<const Point> points) {
  Point p = points[0];
  for (const Point& other : points) p = {std::max(p.x, other.x), std::max(p.y, other.y)};
  return p;
}

}  // namespace

void CheckBoxSpec(const FieldSpec& spec) {
  if (spec.shape.known() && spec.shape.ndim() == 2 && spec.shape[1] >= kBoxColumns) return;
  Throw(ErrorKind::kConfig,
        "the label '{}' has boxes of shape {}; expected (most, columns) with at least the columns "
        "class, left, top, right, bottom and use",
        spec.name, spec.shape.ToString());
}

std::optional<SeenBox> SeenOf(const BoxRow& box, const ImageOrigin& origin) {
  if (!(box.right > box.left && box.bottom > box.top)) return std::nullopt;
  const PointMap& map = origin.map();
  const std::vector<Point> whole = {map({box.left, box.top}), map({box.right, box.top}),
                                    map({box.right, box.bottom}), map({box.left, box.bottom})};
  const std::vector<Point> seen = origin.SeenPartOf(whole);
  if (seen.size() < 3) return std::nullopt;
  const Point low = Lowest(seen), high = Highest(seen);
  const bool enough = AreaOf(seen) >= kLeastSeenPart * AreaOf(whole) &&
                      std::min(high.x - low.x, high.y - low.y) >= kLeastBoxSide;
  return SeenBox{low, high, enough};
}

std::optional<Refusal> WriteBoxes(const FieldSpec& spec, std::span<const float> values,
                                  const ImageOrigin& origin, const TShape& shape, float* to) {
  const int64_t most = spec.shape[0], columns = spec.shape[1];
  const auto numbers = static_cast<int64_t>(values.size()), objects = numbers / columns;
  if (numbers % columns != 0) {
    return Refusal{format("'{}' has {} numbers, which are no boxes of {}", spec.name, numbers,
                          Counted(columns, "number"))};
  }
  if (objects > most) {
    return Refusal{
        format("'{}' has {} boxes, more than the {} of a batch", spec.name, objects, most)};
  }
  float* next = to;
  for (const float* from = values.data(); from != values.data() + numbers; from += columns) {
    const BoxRow box(from);
    const std::optional<SeenBox> seen = SeenOf(box, origin);
    if (!seen) continue;
    std::copy_n(from, kBoxColumns, next);
    next[1] = static_cast<float>(seen->low.x);
    next[2] = static_cast<float>(seen->low.y);
    next[3] = static_cast<float>(seen->high.x);
    next[4] = static_cast<float>(seen->high.y);
    if (!seen->enough && box.IsFor(kPlainBox)) next[5] = static_cast<float>(kDifficultBox);
    next += kBoxColumns;
  }
  std::fill(next, to + shape.Size(), kNoBox);
  return std::nullopt;
}

}  // namespace mxtrain::io
