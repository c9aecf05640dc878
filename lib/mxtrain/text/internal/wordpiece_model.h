// SPDX-License-Identifier: Apache-2.0
#pragma once
// WordPiece (Schuster and Nakajima 2012, as in BERT): a word is cut greedily, each time the longest
// token; tokens that continue a word have a prefix.
#include <cstdint>
#include <string>
#include <string_view>

#include "mxtrain/text/internal/byte_trie.h"
#include "mxtrain/text/internal/vocabulary.h"

namespace mxtrain::text {

struct WordPieceConfig {
  TokenId unknown = 0;        // of a word that cannot be cut, or is too long
  std::string prefix = "##";  // of tokens that continue
  uint64_t most_characters = 100;
};

class WordPieceModel {
 public:
  WordPieceModel(const Vocabulary& vocabulary, WordPieceConfig config);

  // Appends the ids of a word of valid UTF-8 that is not empty.
  void Encode(std::string_view word, Ids* ids) const;

 private:
  const WordPieceConfig config_;
  ByteTrie first_, further_;  // the latter without the prefix
};

}  // namespace mxtrain::text
