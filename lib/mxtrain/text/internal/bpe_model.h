// SPDX-License-Identifier: Apache-2.0
#pragma once
// Byte pair encoding of one piece of text: its characters (or bytes) are tokens at first; the
// adjacent pair of the lowest rank is merged, the leftmost of equals, until no pair has a rank.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/text/internal/id_map.h"
#include "mxtrain/text/internal/vocabulary.h"

namespace mxtrain::text {

struct BpeConfig {
  // Pieces are bytes, and the vocabulary writes them in GPT-2's alphabet. Otherwise pieces are
  // valid UTF-8 and begin as characters.
  bool byte_level = false;
  // For characters that no token is. Without, they are skipped.
  std::optional<TokenId> unknown;
  bool fuse_unknown = false;   // neighbours that are unknown become one token
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
};

// What encoding needs beside the model; serves one thread at a time.
struct BpeScratch {
  Ids symbols;
  std::vector<uint64_t> merges;          // of each symbol with its right neighbour
  std::vector<uint32_t> previous, next;  // of long pieces: a linked list
  struct Candidate {
    uint64_t merge;
    uint32_t place;
    TokenId left, right;
  };
  std::vector<Candidate> heap;
};

class MXTRAIN_API BpeModel {
 public:
  // `merges`: pairs of ids, ordered by rank, with the id of what they make.
  struct Merge {
    TokenId left, right, merged;
  };
  BpeModel(const Vocabulary& vocabulary, const std::vector<Merge>& merges, BpeConfig config);

  // Appends the ids of a piece that is not empty.
  void Encode(std::string_view piece, BpeScratch* scratch, Ids* ids) const;

 private:
  void BeginBytes(std::string_view piece, Ids* symbols) const;
  void BeginCharacters(std::string_view piece, Ids* symbols) const;
  void MergeShort(BpeScratch* scratch) const;
  void MergeLong(BpeScratch* scratch) const;
  uint64_t MergeOf(TokenId left, TokenId right) const {
    return merges_.Find(uint64_t{left} << 32 | right);
  }

  const BpeConfig config_;
  IdMap merges_;                                    // pair to rank << 32 | merged
  std::array<uint64_t, 256> byte_ids_{};            // IdMap::kNone where no token is the byte
  IdMap character_ids_;                             // by code point
  std::unordered_map<std::string, TokenId> whole_;  // with ignore_merges: the bytes of all tokens
};

}  // namespace mxtrain::text
