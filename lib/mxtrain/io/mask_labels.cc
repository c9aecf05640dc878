// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/mask_labels.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/format.h"

namespace mxtrain::io {

std::optional<Refusal> WriteMask(const FieldSpec& spec, const Image& classes,
                                 const ImageOrigin& origin, const TShape& shape, float* to) {
  if (classes.height != origin.height() || classes.width != origin.width()) {
    return Refusal{format("the image has {}x{} pixels, but its mask '{}' has {}x{}", origin.width(),
                          origin.height(), spec.name, classes.width, classes.height)};
  }
  const int64_t height = shape[0], width = shape[1];
  std::fill_n(to, height * width, kNoClassLabel);
  const PointMap back = origin.map().Inverse();
  if (!std::isfinite(back.xx) || !std::isfinite(back.x0) || !std::isfinite(back.y0))
    return std::nullopt;
  const double right = classes.width - 1, bottom = classes.height - 1;
  for (int64_t y = 0; y < height; ++y) {
    const double center = static_cast<double>(y) + 0.5;
    const ImageOrigin::Interval seen = origin.SeenAt(center);
    if (!(seen.first <= seen.last)) continue;
    // Of the pixels whose centres are seen.
    const auto first = static_cast<int64_t>(std::max(0.0, std::ceil(seen.first - 0.5))),
               end = static_cast<int64_t>(
                   std::min(static_cast<double>(width), std::floor(seen.last - 0.5) + 1));
    for (int64_t x = first; x < end; ++x) {
      const Point from = back({static_cast<double>(x) + 0.5, center});
      const auto column = static_cast<int>(std::clamp(std::floor(from.x), 0.0, right)),
                 row = static_cast<int>(std::clamp(std::floor(from.y), 0.0, bottom));
      const uint8_t value = classes.row(row)[column];
      if (value != kNoClass) to[y * width + x] = value;
    }
  }
  return std::nullopt;
}

}  // namespace mxtrain::io
