// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maps 8-bit pixel values to net inputs: (value / 255 - mean) / std, per channel. This is the only
// place where mean and std become a scale and an offset. Used by the pipeline (io/crop_resize.h,
// vectorized) and by devices that receive pixels as bytes (operators/image_normalize).
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Each: one number, or one per channel; on the scale 0 .. 1.
struct PixelNormalization {
  std::vector<double> mean{0}, std{1};
};

// The form used in computation: value * scale + offset, rounded once; if `by_255`, exactly value /
// 255. Trivially copyable.
struct PixelLevels {
  static constexpr int kMostChannels = 4;
  float scale[kMostChannels] = {}, offset[kMostChannels] = {};
  bool by_255 = true;

  MXTRAIN_HD float operator()(uint8_t value, int channel) const {
    return by_255 ? static_cast<float>(value) / 255.0f
                  : fmaf(static_cast<float>(value), scale[channel], offset[channel]);
  }
};

// `channels`: at most kMostChannels. Throws kConfig, naming `who`, for a wrong count of numbers and
// for std <= 0.
MXTRAIN_API PixelLevels LevelsOf(const PixelNormalization& normalization, int channels,
                                 std::string_view who);

}  // namespace mxtrain
