// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/wordpiece_model.h"

#include <algorithm>
#include <utility>

namespace mxtrain::text {

WordPieceModel::WordPieceModel(const Vocabulary& vocabulary, WordPieceConfig config)
    : config_(std::move(config)) {
  vocabulary.ForEach([&](std::string_view token, TokenId id) {
    if (!token.empty()) first_.Insert(token, id);
    if (token.size() > config_.prefix.size() && token.starts_with(config_.prefix))
      further_.Insert(token.substr(config_.prefix.size()), id);
  });
}

void WordPieceModel::Encode(std::string_view word, Ids* ids) const {
  const auto characters = static_cast<uint64_t>(std::count_if(word.begin(), word.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
  const size_t begin = ids->size();
  bool found = characters <= config_.most_characters;
  for (size_t at = 0; found && at < word.size();) {
    const ByteTrie::Hit hit = (at == 0 ? first_ : further_).Longest(word.substr(at));
    found = hit.bytes > 0;
    at += hit.bytes;
    ids->push_back(hit.value);
  }
  if (found) return;
  ids->resize(begin);
  ids->push_back(config_.unknown);
}

}  // namespace mxtrain::text
