// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts by their bytes: the longest one that another text begins with.
#include <cstdint>
#include <string_view>
#include <vector>

#include "mxtrain/text/internal/id_map.h"

namespace mxtrain::text {

class ByteTrie {
 public:
  static constexpr uint32_t kNoValue = ~uint32_t{0};
  struct Hit {
    size_t bytes = 0;  // 0: none
    uint32_t value = kNoValue;
  };

  bool empty() const { return values_.size() == 1; }
  // A key that is not empty; the first value of a key stays.
  void Insert(std::string_view key, uint32_t value) {
    uint64_t node = 0;
    for (const char c : key) {
      uint64_t& next = edges_.At(EdgeOf(node, c));
      if (next == IdMap::kNone) {
        next = values_.size();
        values_.push_back(kNoValue);
      }
      node = next;
    }
    if (values_[node] == kNoValue) values_[node] = value;
  }
  Hit Longest(std::string_view text) const {
    Hit hit;
    uint64_t node = 0;
    for (size_t at = 0; at < text.size();) {
      node = edges_.Find(EdgeOf(node, text[at++]));
      if (node == IdMap::kNone) break;
      if (values_[node] != kNoValue) hit = {at, values_[node]};
    }
    return hit;
  }

 private:
  static uint64_t EdgeOf(uint64_t node, char byte) {
    return node << 8 | static_cast<unsigned char>(byte);
  }

  IdMap edges_;
  std::vector<uint32_t> values_{kNoValue};  // of the nodes; the first is the root
};

}  // namespace mxtrain::text
