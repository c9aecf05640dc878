// SPDX-License-Identifier: Apache-2.0
#pragma once
// A hash table from 64-bit keys to 64-bit values: open addressing, linear probing, at most half
// full.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mxtrain::text {

class IdMap {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};  // no key; no value

  explicit IdMap(size_t expected = 0) {
    size_t slots = 16;
    while (slots < 2 * expected) slots *= 2;
    slots_.resize(slots);
  }

  size_t size() const { return size_; }
  uint64_t Find(uint64_t key) const { return slots_[PlaceOf(key)].value; }
  // The value of a key, kNone for a new one; the reference holds until the next call.
  uint64_t& At(uint64_t key) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Slot& slot = slots_[PlaceOf(key)];
    if (slot.key == kNone) {
      slot.key = key;
      ++size_;
    }
    return slot.value;
  }
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.key != kNone) visit(slot.key, slot.value);
    }
  }

 private:
  struct Slot {
    uint64_t key = kNone, value = kNone;
  };

  size_t PlaceOf(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    size_t place = hash & mask;
    while (slots_[place].key != key && slots_[place].key != kNone) place = (place + 1) & mask;
    return place;
  }
  void Grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key != kNone) slots_[PlaceOf(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace mxtrain::text
