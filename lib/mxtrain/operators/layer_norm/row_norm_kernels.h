// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vectorized passes of LayerNorm, RMSNorm and _NormalizeRows over contiguous rows. A row stays
// in the first cache between the passes: mean, variance, result in forward; sums, result in
// backward.
//
// T is the storage type of the data, float or bfloat16; all else is float.
#include <cstdint>

#include "mxtrain/operators/layer_norm/row_moments.h"

namespace mxtrain::layer_norm {

// Rows that backward reads together share what is loaded for gamma and the sums; longer rows than
// kMostTogether come one by one, so as to stay in the cache.
inline constexpr int kRowsTogether = 4;
inline constexpr int64_t kMostTogether = 4096;

template <typename T>
struct ForwardRows {
  int64_t length = 0;
  double eps = 0;
  const T* x = nullptr;
  const float *gamma = nullptr, *beta = nullptr;  // of norms that have them
  T* y = nullptr;                                 // may be x; null: not wanted
  bool stream = false;                            // write y around the caches
  RowMoments<float>* saved = nullptr;             // null: not wanted, as the others
  float *mean = nullptr, *deviation = nullptr;
};

template <typename T>
struct BackwardRows {
  int64_t length = 0;
  const T *head = nullptr, *value = nullptr;  // value: the data, or the output of kPlain
  const float* gamma = nullptr;               // of norms that have it
  const RowMoments<float>* moments = nullptr;
  T* dx = nullptr;  // may be `head`; null: not wanted
  bool add = false, stream = false;
};

template <typename T>
struct Kernels {
  // Rows [begin, end).
  void (*forward)(RowNorm norm, const ForwardRows<T>& rows, int64_t begin, int64_t end);
  // Rows [begin, end). Unless null, `sums` becomes the sums over these rows of the head gradient
  // times the normalized row, [length], then those of the head gradient, [length].
  void (*backward)(RowNorm norm, const BackwardRows<T>& rows, int64_t begin, int64_t end,
                   float* sums);
};

// For the best instruction set of the machine.
template <typename T>
const Kernels<T>& KernelsOf();

}  // namespace mxtrain::layer_norm
