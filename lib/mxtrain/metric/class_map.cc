// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/class_map.h"

#include <algorithm>
#include <cmath>

namespace mxtrain {

void BestClasses(std::span<const float> scores, int64_t classes, std::span<int32_t> guesses) {
  constexpr size_t kBlock = 1024;  // pixels whose best scores stay in the nearest cache
  const size_t pixels = guesses.size();
  float best[kBlock];
  for (size_t begin = 0; begin < pixels; begin += kBlock) {
    const size_t count = std::min(kBlock, pixels - begin);
    int32_t* const guess = guesses.data() + begin;
    std::copy_n(scores.data() + begin, count, best);
    for (size_t i = 0; i < count; ++i) guess[i] = std::isnan(best[i]) ? -1 : 0;
    for (int32_t k = 1; k < classes; ++k) {
      const float* const plane = scores.data() + static_cast<size_t>(k) * pixels + begin;
      for (size_t i = 0; i < count; ++i) {
        const bool higher = plane[i] > best[i];
        guess[i] = guess[i] < 0 || std::isnan(plane[i]) ? -1 : higher ? k : guess[i];
        best[i] = higher ? plane[i] : best[i];
      }
    }
  }
}

}  // namespace mxtrain
