// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elements of an array in another order: permuted, sliced, reversed, repeated. Operators that only
// move elements are lists of such views (view_moves.h).
#include "mxtrain/operator/kernel.h"

namespace mxtrain {

// Element (i0, i1, ...) is at offset + i0 * stride[0] + i1 * stride[1] + ... A stride may be
// negative, or 0 for a repeated axis.
struct MXTRAIN_API StridedView {
  // Repetition and blocks split every axis in two.
  static constexpr int kMaxAxes = 2 * TShape::kMaxDims;

  int ndim = 0;
  int64_t offset = 0;
  int64_t dim[kMaxAxes] = {}, stride[kMaxAxes] = {};

  void Add(int64_t length, int64_t step) {
    MXTRAIN_ASSERT(ndim < kMaxAxes);
    dim[ndim] = length;
    stride[ndim++] = step;
  }
  // Of `axis` only the `length` indices begin, begin + step, ...: step -1 reverses, 0 repeats.
  StridedView& Take(int axis, int64_t begin, int64_t length, int64_t step = 1) {
    offset += begin * stride[axis];
    dim[axis] = length;
    stride[axis] *= step;
    return *this;
  }
  // The offset of element `index` of the view in row-major order.
  MXTRAIN_HD int64_t Place(int64_t index) const {
    int64_t place = offset;
    for (int i = ndim - 1; i > 0; --i) {
      place += index % dim[i] * stride[i];
      index /= dim[i];
    }
    return ndim > 0 ? place + index * stride[0] : place;
  }
  int64_t Size() const;
  // A plain array of the view's lengths.
  StridedView Dense() const;
  // The array itself.
  static StridedView Whole(const TShape& shape) {
    StridedView view;
    for (int i = 0; i < shape.ndim(); ++i) view.Add(shape[i], shape.Product(i + 1, shape.ndim()));
    return view;
  }
};

}  // namespace mxtrain
