// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of functions whose slope is constant. The slope is a value, so that one loop serves
// all of them.
#include "mxtrain/base/macros.h"

namespace mxtrain {

// head * slope, in the type of the head; S: ComputeOf the array's type. A slope of zero gives zero
// for any head gradient; one of 1 passes every bit, as the identity options of addition promise;
// others add a zero, which keeps padding from becoming -0.
template <typename S>
struct HeadTimesConstant {
  S slope;
  template <typename C>
  [[gnu::always_inline]] MXTRAIN_HD C operator()(C head) const {
    if (slope == S(0)) return C(0);
    if (slope == S(1)) return head;
    return head * static_cast<C>(slope) + C(0);
  }
};

}  // namespace mxtrain
