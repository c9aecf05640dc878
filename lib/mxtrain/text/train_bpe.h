// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training of byte-level BPE (Sennrich et al. 2016, on bytes as in GPT-2).
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

struct TrainBpeOptions {
  int64_t vocabulary_size = 32'000;  // with the 256 bytes and the special tokens
  int64_t minimum_count = 2;         // of a pair that is merged
  // Get the first ids, in this order, and are not split; in the texts they are text like any other.
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
};

// Splits the texts as GPT-2 does, and merges the most frequent pair of tokens again and again;
// among equals the one with the smaller ids. Gives the merges that BpeTrainer of `tokenizers` finds
// with the initial alphabet of ByteLevel. Ends early when no pair is frequent enough. Ids: special
// tokens, the 256 bytes in the order of their characters in the vocabulary, merges.
//
// ToText of the result is a tokenizer.json. Throws kConfig for a size below 256 and the special
// tokens, and for special tokens that are empty or named twice; kData for texts that are not UTF-8.
MXTRAIN_API TokenizerPtr TrainBpe(std::span<const std::string_view> texts,
                                  const TrainBpeOptions& options);

}  // namespace mxtrain::text
