// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short names of vectors, and numbers for them, for tests.
#include <cstdint>
#include <string>
#include <vector>

namespace mxtrain::test {

using FloatVector = std::vector<float>;
using Strings = std::vector<std::string>;

// Numbers in [-1, 1) for large arrays: a linear congruential generator, which costs little also
// under a sanitizer.
inline FloatVector Noise(int64_t size, uint32_t seed) {
  FloatVector values(static_cast<size_t>(size));
  uint32_t state = 2654435769U * (seed + 1);
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int32_t>(state) >> 8) * 0x1p-23F;
  }
  return values;
}

}  // namespace mxtrain::test
