// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vectorized loops of attention over small blocks of floats in the caches: matrix products, the
// running softmax, and the slopes of scores. Rows of matrices that are read or written by vectors
// have a multiple of kPadding elements; what is in the padding is not read as a number.
#include <cstdint>

namespace mxtrain::attention {

// Floats of the widest vector.
inline constexpr int64_t kPadding = 16;

// c [rows, columns] = or += a [rows, inner] b [inner, columns]. Element (r, k) of a is at
// r * a_row + k * a_column; rows of b and c are contiguous. `columns` is a multiple of kPadding.
struct BlockProduct {
  int64_t rows = 0, columns = 0, inner = 0;
  const float* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const float* b = nullptr;
  int64_t b_row = 0;
  float* c = nullptr;
  int64_t c_row = 0;
  bool add = false;
};

// A block of scores [queries, keys], rows at a distance of `row`.
struct ScoreBlock {
  int64_t queries = 0, keys = 0, row = 0;
  // Added to the scores, rows as theirs; null: nothing. Where it is -infinity the key does not
  // count, whatever its score is.
  const float* mask = nullptr;
  const float* factors = nullptr;  // of dropout, rows as theirs; null: 1
};

struct Kernels {
  void (*multiply)(const BlockProduct& product);
  // Continues the softmax of each query over a further block of keys: scores become
  // e^(score - largest), times the factors. `largest` and `sum` (without factors) are updated;
  // rescale is what multiplies means of earlier blocks.
  void (*soften)(const ScoreBlock& block, float* scores, float* largest, float* sum,
                 float* rescale);
  // Backward: with p = e^(score - largest) inverse_sum, `scores` become p times the factors, and
  // `slopes`, which are head gradient times value, become p (factor slope - mean).
  void (*differentiate)(const ScoreBlock& block, const float* largest, const float* inverse_sum,
                        const float* mean, float* scores, float* slopes);
};

// For the best instruction set of the machine.
const Kernels& BlockKernels();

}  // namespace mxtrain::attention
