// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two sums at a time, in double.
#include "mxtrain/base/macros.h"

namespace mxtrain {

struct TwoSums {
  double first = 0, second = 0;
  MXTRAIN_HD friend TwoSums operator+(const TwoSums& a, const TwoSums& b) {
    return {a.first + b.first, a.second + b.second};
  }
};

}  // namespace mxtrain
