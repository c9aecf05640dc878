// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/side_by_side.h"

#include <algorithm>

namespace mxtrain::tasks {
namespace {

constexpr int kWidthsOfGap = 48;  // one in so many columns of an image

}  // namespace

io::Image Beside(const io::Image& left, const io::Image& right) {
  const int gap = std::max(1, std::max(left.width, right.width) / kWidthsOfGap);
  io::Image both;
  both.Resize(std::max(left.height, right.height), left.width + gap + right.width,
              std::max(left.channels, right.channels));
  std::ranges::fill(both.pixels, uint8_t{0});
  for (int y = 0; y < both.height; ++y) {
    const auto row = both.pixels.begin() + ptrdiff_t{y} * both.width * both.channels;
    std::fill_n(row + left.width * both.channels, gap * both.channels, uint8_t{255});
  }
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
  copy(right, left.width + gap);
  return both;
}

}  // namespace mxtrain::tasks
