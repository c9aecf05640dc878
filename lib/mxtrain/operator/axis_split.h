// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mxtrain/base/shape.h"

namespace mxtrain {

// An array seen as [outer, length, inner] around an axis.
struct AxisSplit {
  int64_t outer = 1, length = 0, inner = 1;
  AxisSplit() = default;
  AxisSplit(const TShape& shape, int axis)
      : outer(shape.Product(0, axis)),
        length(shape[axis]),
        inner(shape.Product(axis + 1, shape.ndim())) {}
  int64_t columns() const { return outer * inner; }
};

}  // namespace mxtrain
