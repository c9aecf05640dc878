// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

namespace mxtrain::test {

// Intersection over union of boxes with an area, each left, top, right, bottom.
inline double BoxOverlap(const double* a, const double* b) {
  const double w = std::min(a[2], b[2]) - std::max(a[0], b[0]),
               h = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  if (w <= 0 || h <= 0) return 0;
  return w * h / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h);
}

}  // namespace mxtrain::test
