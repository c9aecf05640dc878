// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shapes from files of other programs. Private to ndarray.
#include <algorithm>
#include <span>

#include "mxtrain/base/error.h"
#include "mxtrain/base/shape.h"

namespace mxtrain {

// Throws kData for more dimensions or elements than an array can have, and negative dimensions.
inline TShape FileShape(std::span<const int64_t> dims) {
  if (dims.size() > TShape::kMaxDims)
    Throw(ErrorKind::kData, "it has {} dimensions; at most {} are supported", dims.size(),
          TShape::kMaxDims);
  const TShape shape(dims);
  int64_t size = 1;
  for (int64_t dim : dims) {
    if (dim < 0 || (dim > 0 && size > TShape::kMaxSize / dim))
      Throw(ErrorKind::kData, "its shape is [{}]", join(dims, ","));
    size *= std::max<int64_t>(dim, 1);
  }
  return shape;
}

}  // namespace mxtrain
