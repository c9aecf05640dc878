// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/image_to_image/planes.h"

#include <algorithm>
#include <cmath>

namespace mxtrain::tasks {

io::Image ImageOfPlanes(std::span<const float> planes, const TShape& shape) {
  const auto channels = static_cast<size_t>(shape[1]),
             pixels = static_cast<size_t>(shape[2] * shape[3]);
  io::Image image;
  image.Resize(static_cast<int>(shape[2]), static_cast<int>(shape[3]), static_cast<int>(channels));
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < pixels; ++i)
      image.pixels[i * channels + c] =
          static_cast<uint8_t>(std::lround(255 * std::clamp(planes[c * pixels + i], 0.0F, 1.0F)));
  }
  return image;
}

io::Image Beside(const io::Image& left, const io::Image& right) {
  io::Image both;
  both.Resize(std::max(left.height, right.height), left.width + right.width,
              std::max(left.channels, right.channels));
  std::ranges::fill(both.pixels, uint8_t{0});
  const auto copy = [&both](const io::Image& from, int begin) {
    for (int y = 0; y < from.height; ++y) {
      for (int x = 0; x < from.width; ++x) {
        for (int c = 0; c < both.channels; ++c) {
          const int own = std::min(c, from.channels - 1);
          both.pixels[static_cast<size_t>((y * both.width + begin + x) * both.channels + c)] =
              from.pixels[static_cast<size_t>((y * from.width + x) * from.channels + own)];
        }
      }
    }
  };
  copy(left, 0);
  copy(right, left.width);
  return both;
}

}  // namespace mxtrain::tasks
