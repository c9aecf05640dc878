// SPDX-License-Identifier: Apache-2.0
#pragma once
// Expresses a product of strided matrices for cuBLAS, whose matrices are column-major. Numbers
// only: no device.
#include <cstdint>

namespace mxtrain::cuda {

// Element (row, column) is at row * row_stride + column * column_stride; one of the strides is 1,
// except along an axis of length 1.
struct MatrixPlaces {
  int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;
  MatrixPlaces Transposed() const { return {columns, rows, column_stride, row_stride}; }
};

// One factor: column-major as stored, or transposed; its columns are `leading` elements apart.
struct Factor {
  bool transposed = false;
  int64_t leading = 1;
};

// C [m, n] = A [m, k] B [k, n], or with `swapped` C' [m, n] = B' [m, k] A' [k, n], whose first
// factor is the caller's B.
struct ProductArrangement {
  bool swapped = false;
  int64_t m = 0, n = 0, k = 0;
  Factor first, second;
  int64_t leading = 1;  // of the result
};

// Throws kBug if neither stride is 1.
ProductArrangement Arrange(const MatrixPlaces& a, const MatrixPlaces& b, const MatrixPlaces& c);

}  // namespace mxtrain::cuda
