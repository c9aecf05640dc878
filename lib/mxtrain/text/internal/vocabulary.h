// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokens and their ids.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

// Ids beyond would make a small file take much memory.
inline constexpr uint64_t kMostIds = uint64_t{1} << 22;

class MXTRAIN_API Vocabulary {
 public:
  Vocabulary() = default;
  // Each token and each id once (kData otherwise, a sentence without the file); ids below kMostIds.
  explicit Vocabulary(const std::vector<std::pair<std::string, TokenId>>& tokens);
  Vocabulary(Vocabulary&&) noexcept = default;
  Vocabulary& operator=(Vocabulary&&) noexcept = default;

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }  // largest id + 1
  size_t count() const { return ids_.size(); }
  std::optional<TokenId> IdOf(std::string_view token) const;
  std::optional<std::string_view> Find(TokenId id) const;
  // Throws kData for an id that no token has.
  std::string_view TokenOf(TokenId id) const;
  template <typename Visit>
  void ForEach(const Visit& visit) const {  // in the order of ids
    for (TokenId id = 0; id < entries_.size(); ++id) {
      if (const auto token = Find(id)) visit(*token, id);
    }
  }

 private:
  struct Entry {
    uint32_t begin = 0, bytes = kAbsent;
  };
  static constexpr uint32_t kAbsent = ~uint32_t{0};

  std::vector<char> letters_;  // of all tokens, one after the other
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, TokenId> ids_;
};

}  // namespace mxtrain::text
