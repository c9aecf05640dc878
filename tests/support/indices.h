// SPDX-License-Identifier: Apache-2.0
#pragma once
// References that serve arrays of any rank: walks over indices.
#include <vector>

#include "mxtrain/base/shape.h"

namespace mxtrain::test {

using Index = std::vector<int64_t>;

// f(index) for every index of the shape, in row-major order.
template <typename F>
void ForIndices(const TShape& shape, F f) {
  for (const int64_t length : shape) {
    if (length == 0) return;
  }
  Index index(static_cast<size_t>(shape.ndim()), 0);
  while (true) {
    f(index);
    int axis = shape.ndim() - 1;
    while (axis >= 0 && ++index[static_cast<size_t>(axis)] == shape[axis])
      index[static_cast<size_t>(axis--)] = 0;
    if (axis < 0) return;
  }
}

// The row-major offset of an index, or -1 where it is outside.
inline int64_t OffsetOf(const TShape& shape, const Index& index) {
  int64_t offset = 0;
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    const int64_t i = index[static_cast<size_t>(axis)];
    if (i < 0 || i >= shape[axis]) return -1;
    offset = offset * shape[axis] + i;
  }
  return offset;
}

}  // namespace mxtrain::test
