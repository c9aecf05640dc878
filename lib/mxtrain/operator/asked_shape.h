// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parameter `shape` of operators without arguments, in MXNet's reading: () and dimensions of 0
// or -1 are unknown and follow from the readers.
#include <vector>

#include "mxtrain/base/shape.h"

namespace mxtrain {

inline TShape AskedShape(const TShape& shape) {
  if (shape.ndim() <= 0) return TShape();
  std::vector<int64_t> dims(shape.begin(), shape.end());
  for (int64_t& d : dims) {
    if (d == 0) d = TShape::kUnknown;
  }
  return TShape(dims);
}

}  // namespace mxtrain
