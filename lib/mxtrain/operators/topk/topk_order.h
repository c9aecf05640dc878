// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first elements of a column by comparisons.
#include <algorithm>
#include <cstdint>

#include "mxtrain/operator/order_key.h"

namespace mxtrain::topk {

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
