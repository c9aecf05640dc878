// SPDX-License-Identifier: Apache-2.0
#pragma once
// The positions 0 .. count - 1 of an array in ascending order of keys; positions with equal keys
// stay in their order. A radix sort, from the lowest byte to the highest (Knuth, "The Art of
// Computer Programming", volume 3, 5.2.5): one thread counts and moves each slice of the array, so
// that the result is the same for any number of threads. Written once for all devices.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "mxtrain/operator/rows.h"

namespace mxtrain {
namespace detail {

inline constexpr int64_t kRadix = 256;

// One pass of the sort, over the byte at bit `shift` of the keys.
template <typename K>
struct RadixPass {
  Slices slices;
  int shift;
  const K* keys;
  const uint32_t* positions;
  K* next_keys;
  uint32_t* next_positions;
  // [kRadix, slices]: how often each byte occurs in each slice; then where the first of them goes.
  uint32_t* table;
  uint32_t* totals;  // [kRadix]

  MXTRAIN_HD int64_t ByteOf(int64_t p) const {
    return static_cast<int64_t>(keys[p] >> shift & 255);
  }
  MXTRAIN_HD uint32_t* Entry(int64_t byte, int64_t slice) const {
    return table + byte * slices.count + slice;
  }
};

template <typename K>
struct CountSlice {
  RadixPass<K> pass;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t slice) const {
    uint32_t counts[kRadix] = {};
    const int64_t end = pass.slices.Begin(slice + 1);
    for (int64_t p = pass.slices.Begin(slice); p < end; ++p) ++counts[pass.ByteOf(p)];
    for (int64_t byte = 0; byte < kRadix; ++byte) *pass.Entry(byte, slice) = counts[byte];
  }
};
template <typename K>
struct TotalByte {
  RadixPass<K> pass;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t byte) const {
    uint32_t sum = 0;
    for (int64_t s = team.rank(); s < pass.slices.count; s += team.size())
      sum += *pass.Entry(byte, s);
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) pass.totals[byte] = sum;
  }
};
template <typename K>
struct StartByte {
  RadixPass<K> pass;
  MXTRAIN_HD void operator()(int64_t byte) const {
    uint32_t next = 0;
    for (int64_t lower = 0; lower < byte; ++lower) next += pass.totals[lower];
    for (int64_t s = 0; s < pass.slices.count; ++s) {
      const uint32_t count = *pass.Entry(byte, s);
      *pass.Entry(byte, s) = next;
      next += count;
    }
  }
};
template <typename K>
struct MoveSlice {
  RadixPass<K> pass;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t slice) const {
    uint32_t next[kRadix];
    for (int64_t byte = 0; byte < kRadix; ++byte) next[byte] = *pass.Entry(byte, slice);
    const int64_t end = pass.slices.Begin(slice + 1);
    for (int64_t p = pass.slices.Begin(slice); p < end; ++p) {
      const uint32_t to = next[pass.ByteOf(p)]++;
      pass.next_keys[to] = pass.keys[p];
      pass.next_positions[to] = pass.positions[p];
    }
  }
};

struct NumberPosition {
  uint32_t* positions;
  MXTRAIN_HD void operator()(int64_t p) const { positions[p] = static_cast<uint32_t>(p); }
};
template <typename K, typename F>
struct FindKey {
  F key;
  const uint32_t* positions;
  K* keys;
  MXTRAIN_HD void operator()(int64_t p) const { keys[p] = key(static_cast<int64_t>(positions[p])); }
};

}  // namespace detail

// K: type of the keys, uint32_t or uint64_t.
template <typename K, typename Device>
class PositionOrder {
 public:
  static constexpr int64_t kMostPositions = (int64_t{1} << 32) - 1;

  // Size in bytes of the scratch space.
  static int64_t Bytes(int64_t count) {
    constexpr auto kOfPosition = static_cast<int64_t>(sizeof(K) + sizeof(uint32_t));
    return 2 * count * kOfPosition +
           detail::kRadix * (SlicesOf(count).count + 1) * static_cast<int64_t>(sizeof(uint32_t));
  }

  // Positions in their order. `scratch`: Bytes(count), aligned to 8 bytes; the result is in it.
  PositionOrder(const Device& device, int64_t count, void* scratch)
      : device_(device), slices_(SlicesOf(count)) {
    keys_ = static_cast<K*>(scratch);
    next_keys_ = keys_ + count;
    positions_ = reinterpret_cast<uint32_t*>(next_keys_ + count);
    next_positions_ = positions_ + count;
    table_ = next_positions_ + count;
    Launch(device_, count, detail::NumberPosition{positions_});
  }

  // Sorts by key(position), a functor for kernels that returns a K below 2^bits. Called again, it
  // sorts by another key and keeps the order of positions whose new keys are equal.
  template <typename F>
  void SortBy(const F& key, int bits) {
    Launch(device_, slices_.length, detail::FindKey<K, F>{key, positions_, keys_});
    if (slices_.length < 2) return;
    for (int shift = 0; shift < bits; shift += 8) {
      const detail::RadixPass<K> pass{slices_,    shift,           keys_,  positions_,
                                      next_keys_, next_positions_, table_, TotalsOf(table_)};
      ForColumns(device_, slices_.count, slices_.longest(), detail::CountSlice<K>{pass});
      ForRows(device_, detail::kRadix, slices_.count, detail::TotalByte<K>{pass});
      Launch(device_, detail::kRadix, detail::StartByte<K>{pass});
      ForColumns(device_, slices_.count, slices_.longest(), detail::MoveSlice<K>{pass});
      std::swap(keys_, next_keys_);
      std::swap(positions_, next_positions_);
    }
  }

  // [count], the keys of the last SortBy and the positions that have them.
  const K* keys() const { return keys_; }
  const uint32_t* positions() const { return positions_; }

 private:
  // A CPU has few threads; a GPU has many, each of them slow.
  static Slices SlicesOf(int64_t count) {
    Slices slices;
    slices.length = count;
    slices.count = Device::kType == DeviceType::kCPU ? std::clamp<int64_t>(count / 4096, 1, 64)
                                                     : std::clamp<int64_t>(count / 64, 1, 1024);
    return slices;
  }
  uint32_t* TotalsOf(uint32_t* table) const { return table + detail::kRadix * slices_.count; }

  Device device_;
  Slices slices_;
  K *keys_, *next_keys_;
  uint32_t *positions_, *next_positions_, *table_;
};

}  // namespace mxtrain
