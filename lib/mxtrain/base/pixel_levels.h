#pragma once
// From the 8-bit values of pixels to the numbers that a net reads: (value / 255 - mean) / std, by channel. Here alone mean and std become a scale and
// an offset; the pipeline computes with them (io/crop_resize.h, in vectors), and so do the devices that get pixels as bytes (operators/image_normalize).
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Each: one number, or one per channel; in units of 0 .. 1.
struct PixelNormalization {
  std::vector<double> mean{0}, std{1};
};

// As it is computed: value * scale + offset, rounded once; where `by_255` it is value / 255 to the last bit. Travels to a device byte by byte.
struct PixelLevels {
  static constexpr int kMostChannels = 4;
  float scale[kMostChannels] = {}, offset[kMostChannels] = {};
  bool by_255 = true;

  MXTRAIN_HD float operator()(uint8_t value, int channel) const {
    return by_255 ? static_cast<float>(value) / 255.0f : fmaf(static_cast<float>(value), scale[channel], offset[channel]);
  }
};

// `channels`: at most kMostChannels. Throws kConfig, naming `who`, for another count of numbers and for an std that is not above 0.
MXTRAIN_API PixelLevels LevelsOf(const PixelNormalization& normalization, int channels, std::string_view who);

}  // namespace mxtrain
