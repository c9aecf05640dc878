// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/vocabulary.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::text {

Vocabulary::Vocabulary(const std::vector<std::pair<std::string, TokenId>>& tokens) {
  size_t bytes = 0, largest = 0;
  for (const auto& [token, id] : tokens) {
    if (id >= kMostIds) {
      Throw(ErrorKind::kData, "the token '{}' has the id {}; ids are below {}", Shortened(token),
            id, kMostIds);
    }
    bytes += token.size();
    largest = std::max<size_t>(largest, id);
  }
  if (bytes >= kAbsent) Throw(ErrorKind::kData, "the tokens have {} bytes, too many", bytes);
  letters_.reserve(bytes);
  entries_.resize(tokens.empty() ? 0 : largest + 1);
  ids_.reserve(tokens.size());
  for (const auto& [token, id] : tokens) {
    Entry& entry = entries_[id];
    if (entry.bytes != kAbsent) {
      Throw(ErrorKind::kData, "the tokens '{}' and '{}' have the same id {}",
            Shortened(TokenOf(id)), Shortened(token), id);
    }
    entry = {static_cast<uint32_t>(letters_.size()), static_cast<uint32_t>(token.size())};
    letters_.insert(letters_.end(), token.begin(), token.end());
    if (!ids_.emplace(TokenOf(id), id).second)
      Throw(ErrorKind::kData, "the token '{}' is there twice", Shortened(token));
  }
}

std::optional<TokenId> Vocabulary::IdOf(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string_view> Vocabulary::Find(TokenId id) const {
  if (id >= entries_.size() || entries_[id].bytes == kAbsent) return std::nullopt;
  return std::string_view(letters_.data() + entries_[id].begin, entries_[id].bytes);
}

std::string_view Vocabulary::TokenOf(TokenId id) const {
  const auto token = Find(id);
  if (!token)
    Throw(ErrorKind::kData, "no token has the id {}; the vocabulary has {}", id,
          Counted(count(), "token"));
  return *token;
}

}  // namespace mxtrain::text
