// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order of topk as unsigned keys, and the first elements of a column by comparisons.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "mxtrain/operator/elementwise.h"

namespace mxtrain::topk {

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

// A key and the index of its element; no two are equal.
template <typename K>
struct Entry {
  K key;
  int32_t index;
  Entry() = default;
  Entry(K k, int64_t i) : key(k), index(static_cast<int32_t>(i)) {}
  friend bool operator<(const Entry& a, const Entry& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
  int32_t Index() const { return index; }
};
// As one number, which is faster to compare.
template <>
struct Entry<uint32_t> {
  uint64_t both;
  Entry() = default;
  Entry(uint32_t k, int64_t i) : both(uint64_t{k} << 32 | static_cast<uint64_t>(i)) {}
  friend bool operator<(const Entry& a, const Entry& b) { return a.both < b.both; }
  int32_t Index() const { return static_cast<int32_t>(both & 0xffffffffu); }
};

// Up to so many elements are selected by insertion.
inline constexpr int64_t kFew = 32;
// The entries that FirstOfColumn needs.
inline int64_t RoomOf(int64_t length, int64_t k) {
  return k <= kFew && k < length ? k : length;
}

// The first k entries of entry(0) .. entry(length - 1), in order, at the start of `room`. 0 < k <=
// length.
template <typename E, typename F>
void FirstOfColumn(const F& entry, int64_t length, int64_t k, E* room) {
  if (RoomOf(length, k) == length) {
    for (int64_t i = 0; i < length; ++i) room[i] = entry(i);
    if (k < length) std::nth_element(room, room + k, room + length);
    std::sort(room, room + k);
    return;
  }
  int64_t count = 0;
  for (int64_t i = 0; i < length; ++i) {
    const E e = entry(i);
    if (count == k && !(e < room[k - 1])) continue;
    int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && e < room[at - 1]; --at) room[at] = room[at - 1];
    room[at] = e;
  }
}

}  // namespace mxtrain::topk
