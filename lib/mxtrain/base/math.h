// SPDX-License-Identifier: Apache-2.0
#pragma once
// Integer arithmetic on sizes, for host and device. Both arguments have the type of the first;
// their sum must not overflow.
#include <type_traits>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// n / divisor, rounded up; n >= 0, divisor > 0.
template <typename T>
MXTRAIN_HD constexpr T CeilDivide(T n, std::type_identity_t<T> divisor) {
  return (n + divisor - 1) / divisor;
}

// The least multiple of `step` that is not less than n; n >= 0, step > 0.
template <typename T>
MXTRAIN_HD constexpr T RoundUp(T n, std::type_identity_t<T> step) {
  return CeilDivide(n, step) * step;
}

}  // namespace mxtrain
