// SPDX-License-Identifier: Apache-2.0
#pragma once
// MXNet's 2-bit gradient compression with error feedback (kvstore/gradient_compression): of each
// gradient, with what earlier steps did not send of it, +threshold, -threshold or 0 is sent. Four
// values to a byte, the first in the highest bits (11: +, 10: -, 00: 0); 16 to a word, the last one
// padded.
#include <array>
#include <cstdint>

#include "mxtrain/base/macros.h"

namespace mxtrain {

class MXTRAIN_API TwoBit {
 public:
  explicit TwoBit(float threshold);  // above 0

  // Of n values.
  static int64_t PackedBytes(int64_t n);

  // Writes PackedBytes(n) bytes. `residual`: what was not sent before, updated.
  void Pack(const float* gradient, float* residual, int64_t n, uint8_t* packed) const;
  // sum = the n values that `parts` packed gradients stand for, added in their order; each begins
  // `stride` bytes after the one before.
  void Sum(const uint8_t* first, int64_t stride, int parts, int64_t n, float* sum) const;

 private:
  const float threshold_;
  std::array<std::array<float, 4>, 256> values_{};  // of a byte
};

}  // namespace mxtrain
