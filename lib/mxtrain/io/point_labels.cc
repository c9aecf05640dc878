// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/point_labels.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::io {

void CheckPointSpec(const FieldSpec& spec) {
  if (spec.shape.known() && spec.shape.ndim() == 2 && spec.shape[0] >= 1 && spec.shape[1] >= 2)
    return;
  Throw(ErrorKind::kConfig,
        "the label '{}' has points of shape {}; expected (most, columns) with at least the columns "
        "x and y",
        spec.name, spec.shape.ToString());
}

std::optional<Refusal> WritePoints(const FieldSpec& spec, std::span<const float> values,
                                   const PointMap& map, int64_t height, int64_t width, float* to) {
  const int64_t most = spec.shape[0], columns = spec.shape[1];
  const auto numbers = static_cast<int64_t>(values.size()), points = numbers / columns;
  if (numbers % columns != 0) {
    return Refusal{format("'{}' has {} numbers, which are no points of {}", spec.name, numbers,
                          Counted(columns, "number"))};
  }
  if (points > most) {
    return Refusal{
        format("'{}' has {} points, more than the {} of a batch", spec.name, points, most)};
  }
  float* next = to;
  for (const float* from = values.data(); from != values.data() + numbers; from += columns) {
    const Point at = map({from[0], from[1]});
    const bool inside = at.x >= 0 && at.y >= 0 && at.x <= static_cast<double>(width) &&
                        at.y <= static_cast<double>(height);
    if (!inside) continue;
    std::copy_n(from, columns, next);
    next[0] = static_cast<float>(at.x);
    next[1] = static_cast<float>(at.y);
    next += columns;
  }
  std::fill(next, to + most * columns, kNoPoint);
  return std::nullopt;
}

}  // namespace mxtrain::io
