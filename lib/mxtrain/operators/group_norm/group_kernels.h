// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the vectorized kernels of GroupNorm and InstanceNorm read and write. T is the storage type
// of all arrays, float or a 16-bit type; sums are float, in blocks of layer_norm::kBlock, and
// double over these.
//
// The gradient, with n = (x - mean) / s, s = sqrt(variance + eps), g the head gradient:
//   dx = (g gamma - mean of g gamma - n mean of g gamma n) / s
//   dgamma = sum of g n, and dbeta = sum of g, over the pieces with this element
#include <cstdint>

#include "mxtrain/base/dtype.h"
#include "mxtrain/operators/layer_norm/row_moments.h"

namespace mxtrain::group_norm {

using Saved = layer_norm::RowMoments<float>;

struct GroupView {
  int64_t rows = 0, groups = 0;   // rows: samples times groups
  int64_t pieces = 0, piece = 0;  // of a row; elements of a piece
  int64_t length() const { return pieces * piece; }
  int64_t scales() const { return groups * pieces; }  // elements of gamma
  int64_t ScaleOf(int64_t row, int64_t of_row) const { return row % groups * pieces + of_row; }
};

// Sums over a piece: of the head gradient, and of its product with the normalized row.
struct PieceSums {
  double head = 0, product = 0;
};

template <typename T>
struct ForwardGroups {
  GroupView view;
  double eps = 0;
  const T *x = nullptr, *gamma = nullptr, *beta = nullptr;
  T *y = nullptr, *mean = nullptr, *deviation = nullptr;  // null: not wanted
  Saved* saved = nullptr;                                 // of each row; null: not wanted
};

template <typename T>
struct BackwardGroups {
  GroupView view;
  const T *head = nullptr, *x = nullptr, *gamma = nullptr;
  const Saved* saved = nullptr;
  PieceSums* sums = nullptr;  // of each piece: written
  T* dx = nullptr;            // null: not wanted
  bool add = false;           // dx += the gradient
};

template <typename T>
struct Kernels {
  // Rows [begin, end).
  void (*forward)(const ForwardGroups<T>& groups, int64_t begin, int64_t end);
  void (*backward)(const BackwardGroups<T>& groups, int64_t begin, int64_t end);
};

}  // namespace mxtrain::group_norm
