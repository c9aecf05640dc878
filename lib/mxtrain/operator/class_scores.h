// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scores of classes before a softmax, of anchors or regions; for kernels.
#include <cstdint>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/vector_math.h"

namespace mxtrain {

// Row-major, [rows, columns].
template <typename T>
struct ClassScores {
  using C = ComputeOf<T>;
  int64_t columns;
  const T* scores;

  MXTRAIN_HD C Score(int64_t row, int64_t column) const {
    return static_cast<C>(scores[row * columns + column]);
  }
  // The logarithm of the sum of the exponentials of a row's scores.
  MXTRAIN_HD C LogSum(int64_t row) const {
    C largest = Score(row, 0);
    for (int64_t k = 1; k < columns; ++k) {
      const C score = Score(row, k);
      largest = score > largest ? score : largest;
    }
    C sum = C(0);
    for (int64_t k = 0; k < columns; ++k) sum += vector_math::Exp(Score(row, k) - largest);
    return largest + vector_math::Log(sum);
  }
};

}  // namespace mxtrain
