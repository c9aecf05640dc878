// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order of numbers as unsigned integers, for sorts: -0 equals 0, NaN is last in both
// directions.
#include <bit>
#include <cstdint>
#include <type_traits>

#include "mxtrain/operator/elementwise.h"

namespace mxtrain {

template <typename T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Keys ascend in the order of the elements; equal elements have equal keys; those of NaN are last.
template <typename T>
MXTRAIN_HD KeyOf<T> MakeKey(T value, bool ascend) {
  using K = KeyOf<T>;
  constexpr K kSign = K{1} << (8 * sizeof(K) - 1);
  K key;
  if constexpr (std::is_integral_v<T>) {
    key = static_cast<K>(value);
    if constexpr (std::is_signed_v<T>) key ^= kSign;
  } else {
    using F = ComputeOf<T>;
    const F number = static_cast<F>(value);
    if (number != number) return ~K{0};
    // -0 + 0 is 0. Negative numbers grow as their bits shrink.
    const K bits = std::bit_cast<K>(number + F(0));
    key = (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  return ascend ? key : ~key;
}

}  // namespace mxtrain
