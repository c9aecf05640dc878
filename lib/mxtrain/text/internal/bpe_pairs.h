// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of BPE training: words as tokens, how often each pair of neighbours occurs, and where.
//
// The counts follow BpeTrainer of `tokenizers` exactly, where it is peculiar too: the count of a
// pair that was merged stays what it was, and a pair that becomes frequent at several times is
// queued once for each, with the words where it was found then.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "mxtrain/text/internal/id_map.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

struct TokenPair {
  TokenId left, right;
  bool operator==(const TokenPair&) const = default;
};

class BpePairs {
 public:
  // A word, its tokens at first, and how often it occurs.
  void AddWord(const Ids& tokens, int64_t count);
  // After the last word: queues all pairs.
  void Begin() { QueueFound(); }

  // The pair of the largest count, of equals that of the smallest ids; nothing if none occurs
  // `minimum_count` times. It leaves the queue with the words where it was found.
  std::optional<TokenPair> TakeBest(int64_t minimum_count);
  // Replaces the pair by a token in the words of the pair that was taken last.
  void Merge(TokenPair pair, TokenId merged);

 private:
  struct Word {
    size_t begin, length;  // in symbols_
    int64_t count;
  };
  struct PairState {
    TokenPair pair;
    int64_t count = 0;
    std::vector<uint32_t> found;  // words where it was found since it was queued last
  };
  struct Queued {
    uint64_t count;
    uint32_t state;
    std::vector<uint32_t> words;
  };

  uint32_t StateOf(TokenPair pair);
  void Count(TokenPair pair, int64_t change, uint32_t word);
  void MergeInWord(TokenPair pair, TokenId merged, uint32_t word);
  void QueueFound();
  void Push(Queued queued);
  bool ComesLater(const Queued& a, const Queued& b) const;

  Ids symbols_;  // of all words
  std::vector<Word> words_;
  std::vector<PairState> states_;
  IdMap index_;                  // pair to its state
  std::vector<uint32_t> found_;  // states with words that are not queued
  std::vector<Queued> heap_;     // the best on top
  std::vector<uint32_t> taken_;
};

}  // namespace mxtrain::text
