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

}  // namespace mxtrain::tasks
