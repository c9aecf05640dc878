#pragma once
// Copies between a plain array and pieces of it along an axis: what Concat and SliceChannel are, each the backward of the other.
#include <span>

#include "mxtrain/operator/kernel.h"

namespace mxtrain {

// An array seen as [outer, length, inner] around an axis; a piece is the columns [begin, begin + length of the piece).
struct AxisView {
  int64_t outer = 0, length = 0, inner = 0;
  AxisView() = default;
  AxisView(const TShape& shape, int axis)
      : outer(shape.Product(0, axis)), length(shape[axis]), inner(shape.Product(axis + 1, shape.ndim())) {}
};

// piece = whole[:, begin : begin + length, :] or += it, and the other way round. `length` is that of the piece.
MXTRAIN_API void CopyFromWhole(OpReqType req, const TBlob& whole, const AxisView& view, int64_t begin, int64_t length, const TBlob& piece);
MXTRAIN_API void CopyToWhole(OpReqType req, const TBlob& piece, const AxisView& view, int64_t begin, int64_t length, const TBlob& whole);

}  // namespace mxtrain
