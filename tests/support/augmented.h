// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "mxtrain/io/augmenter.h"

namespace mxtrain::test {

inline constexpr uint64_t kAugmentSeed = 11;

// An image after a chain of transforms, with the random numbers of an example and an epoch.
inline io::Image Augmented(const std::vector<io::TransformSpec>& specs, const io::Image& image,
                           int64_t index = 0, int64_t epoch = 0, uint64_t seed = kAugmentSeed) {
  const io::Augmenter augmenter(specs, image.channels);
  io::Image result, scratch;
  const auto steps = augmenter.Begin(image.height, image.width,
                                     io::RandomStream(seed, epoch, index), 0, augmenter.size());
  augmenter.ToImage(steps, image, {image.height, image.width, {0, 0, image.height, image.width}, 1},
                    &result, &scratch);
  return result;
}

}  // namespace mxtrain::test
