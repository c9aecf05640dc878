// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/matrix_arrangement.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::cuda {
namespace {

bool ByColumns(const MatrixPlaces& p) {
  return (p.row_stride == 1 || p.rows <= 1) && (p.column_stride >= p.rows || p.columns <= 1);
}

// As cuBLAS checks: columns must not overlap.
int64_t Leading(int64_t stride, int64_t length) {
  return std::max({stride, length, int64_t{1}});
}

Factor FactorOf(const MatrixPlaces& p) {
  if (ByColumns(p)) return {false, Leading(p.columns > 1 ? p.column_stride : 1, p.rows)};
  const MatrixPlaces turned = p.Transposed();
  if (!ByColumns(turned))
    Throw(ErrorKind::kBug, "a matrix with strides {} and {} cannot be a factor", p.row_stride,
          p.column_stride);
  return {true, Leading(turned.columns > 1 ? turned.column_stride : 1, turned.rows)};
}

}  // namespace

ProductArrangement Arrange(const MatrixPlaces& a, const MatrixPlaces& b, const MatrixPlaces& c) {
  if (ByColumns(c))
    return {false, c.rows, c.columns, a.columns, FactorOf(a), FactorOf(b), FactorOf(c).leading};
  const MatrixPlaces turned = c.Transposed();
  if (!ByColumns(turned))
    Throw(ErrorKind::kBug, "a matrix with strides {} and {} cannot be a product", c.row_stride,
          c.column_stride);
  return {true,
          turned.rows,
          turned.columns,
          b.rows,
          FactorOf(b.Transposed()),
          FactorOf(a.Transposed()),
          FactorOf(turned).leading};
}

}  // namespace mxtrain::cuda
