// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/class_colours.h"

#include "mxtrain/io/source.h"

namespace mxtrain::tasks {

// Bits 0, 3, 6 of the class are the highest of red; 1, 4, 7 of green; 2, 5 of blue.
io::Rgb ColourOfClass(int k) {
  if (k == io::kNoClass) return {224, 224, 192};
  io::Rgb colour{};
  for (int bit = 7; k != 0 && bit >= 0; --bit, k >>= 3) {
    for (size_t c = 0; c < 3; ++c) {
      const int on = (k >> c) & 1;
      colour[c] = static_cast<uint8_t>(colour[c] | (on << bit));
    }
  }
  return colour;
}

const io::Palette& ClassPalette() {
  static const io::Palette palette = [] {
    io::Palette all;
    for (int k = 0; k < 256; ++k) all[static_cast<size_t>(k)] = ColourOfClass(k);
    return all;
  }();
  return palette;
}

void PaintClasses(const io::Image& classes, io::Image* image) {
  io::ConvertChannels(3, image);
  for (size_t i = 0; i < classes.pixels.size(); ++i) {
    const uint8_t k = classes.pixels[i];
    if (k == io::kNoClass) continue;
    const io::Rgb& colour = ClassPalette()[k];
    for (size_t c = 0; c < 3; ++c) {
      uint8_t& value = image->pixels[3 * i + c];
      value = static_cast<uint8_t>((value + colour[c]) / 2);
    }
  }
}

}  // namespace mxtrain::tasks
