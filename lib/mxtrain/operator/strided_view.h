// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elements of a plain array in another order: permuted, sliced, reversed, repeated. The basis of
// the data movement operators.
#include "mxtrain/operator/kernel.h"

namespace mxtrain {

// Element (i0, i1, ...) is at offset + i0 * stride[0] + i1 * stride[1] + ... A stride may be
// negative, or 0 for a repeated axis.
struct MXTRAIN_API StridedView {
  int ndim = 0;
  int64_t offset = 0;
  int64_t dim[TShape::kMaxDims] = {}, stride[TShape::kMaxDims] = {};

  void Add(int64_t length, int64_t step) {
    dim[ndim] = length;
    stride[ndim++] = step;
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
  // The same elements in the same order with as few axes as possible; at least one.
  StridedView Collapsed() const;
  // The array itself.
  static StridedView Whole(const TShape& shape) {
    StridedView view;
    for (int i = 0; i < shape.ndim(); ++i) view.Add(shape[i], shape.Product(i + 1, shape.ndim()));
    return view;
  }
};

// dense = the view of `array`, or += it. `dense` is plain and has as many elements as the view.
// strided_view.cuh has these functions for OnGpu.
MXTRAIN_API void CopyFromView(const OnCpu& device, OpReqType req, const TBlob& array,
                              const StridedView& view, const TBlob& dense);
// The view of `array` = dense, or += it; other elements are unchanged. No element may occur twice
// in the view.
MXTRAIN_API void CopyToView(const OnCpu& device, OpReqType req, const TBlob& dense,
                            const StridedView& view, const TBlob& array);

// The gradient of taking a view: `array` is zero except for the view, which is `dense`; or += that.
MXTRAIN_API void ScatterView(const OnCpu& device, OpReqType req, const TBlob& dense,
                             const StridedView& view, const TBlob& array);

}  // namespace mxtrain
