// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ids of pieces of text that occurred lately. Of a fixed size: a new piece takes the place of
// another one whose hash ends alike. Only short pieces with few ids are kept; a slot is one line of
// the processor's cache.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

class PieceCache {
 public:
  // A piece in the form in which it is compared: its bytes, zeros, and in the last byte its number
  // of bytes, which is never 0.
  using Key = std::array<uint64_t, 3>;
  static constexpr size_t kMostBytes = sizeof(Key) - 1, kMostIdsOfPiece = 9;

  PieceCache() : slots_(kSlots) {}

  static Key KeyOf(std::string_view piece) {  // at most kMostBytes, not empty
    Key key{};
    std::memcpy(key.data(), piece.data(), piece.size());
    key[2] |= uint64_t{piece.size()} << 56;
    return key;
  }
  // The ids of a piece; nullptr if it is not here. They hold until the next Put.
  const std::span<const TokenId>* Find(const Key& key) {
    const Slot& slot = slots_[PlaceOf(key)];
    if (slot.key != key) return nullptr;
    found_ = {slot.ids.data(), slot.count};
    return &found_;
  }
  void Put(const Key& key, std::span<const TokenId> ids) {
    if (ids.size() > kMostIdsOfPiece) return;
    Slot& slot = slots_[PlaceOf(key)];
    slot.key = key;
    slot.count = static_cast<uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
  }

 private:
  struct alignas(64) Slot {
    Key key{};
    uint32_t count = 0;
    std::array<TokenId, kMostIdsOfPiece> ids{};
  };
  static_assert(sizeof(Slot) == 64);
  static constexpr size_t kSlots = size_t{1} << 15;

  static size_t PlaceOf(const Key& key) {
    uint64_t hash = (key[0] ^ key[1] * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32 ^ key[2]) * 0xc4ceb9fe1a85ec53u;
    return hash >> 49;
  }

  std::vector<Slot> slots_;
  std::span<const TokenId> found_;
};

}  // namespace mxtrain::text
