// SPDX-License-Identifier: Apache-2.0
#pragma once
// An array as matrices with strides, for matrix products.
#include <cstdint>

namespace mxtrain {

// Element (row, column) of matrix i is at i * batch_stride + row * row_stride + column *
// column_stride; strides in elements.
struct MatrixView {
  int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;
  int64_t batch = 1, batch_stride = 0;
  MatrixView Transposed() const {
    return {columns, rows, column_stride, row_stride, batch, batch_stride};
  }
};

}  // namespace mxtrain
