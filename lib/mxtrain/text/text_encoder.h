// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the texts of a classifier to ids: a tokenizer with what is done before and after it. It is
// also a text, which checkpoints carry. Immutable: every call may come from any thread.
//
// Ids: below the size of the vocabulary those of the tokenizer; then `buckets` of n-grams; the last
// one is that of padding, which no text has.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

struct EncoderOptions {
  bool lowercase = false;          // letters, one by one, as the normalizer Lowercase does
  bool split_punctuation = false;  // each punctuation mark becomes a word, by blanks around it
  // Behind the tokens of a text come its n-grams of 2 to `ngrams` tokens, those of 2 first, each in
  // the order of the text. The id of one: size of the vocabulary + h mod buckets, h the 64-bit
  // FNV-1a hash (offset basis 14695981039346656037, prime 1099511628211) of the ids of its tokens,
  // each as 4 bytes, the lowest first. 1: none.
  int64_t ngrams = 1;
  int64_t buckets = 0;
  // What the tokenizer puts around a text (EncodeOptions::add_special); not with n-grams.
  bool special_tokens = false;
};

class MXTRAIN_API TextEncoder {
 public:
  // Throws kConfig for n-grams without buckets, buckets without n-grams, n-grams with special
  // tokens, and a tokenizer that puts none around a text.
  TextEncoder(TokenizerPtr tokenizer, const EncoderOptions& options);
  // The inverse of ToText. Errors (kData) begin with `file_name` and name the key.
  static TextEncoder FromText(std::string_view text, const std::string& file_name);

  // What the tokenizer is given of a text.
  static std::string Prepared(std::string_view text, const EncoderOptions& options);
  // Appends the ids of a text. Where the tokenizer ends lines, as words do, a text is one line,
  // whose end has no id. Throws kData for what the tokenizer cannot encode.
  void Encode(std::string_view text, Ids* ids) const;
  // The same of an example of `length` ids: a longer text loses what is behind them, but not the
  // special tokens at its end.
  void Cut(int64_t length, Ids* ids) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const EncoderOptions& options() const { return options_; }
  TokenId padding() const {
    return static_cast<TokenId>(tokenizer_->vocabulary_size() + options_.buckets);
  }
  int64_t num_ids() const { return int64_t{padding()} + 1; }  // rows of an embedding
  // For people: "5120 words with <unk> and <eos>, 2-grams in 200000 buckets".
  std::string Describe() const;
  std::string ToText() const;

 private:
  void AppendNgrams(size_t first, Ids* ids) const;

  TokenizerPtr tokenizer_;
  EncoderOptions options_;
  bool ends_lines_ = false;  // the tokenizer has a token for the end of a line
  Ids ending_;               // special tokens behind a text
};

// The hash of an n-gram, as EncoderOptions says it.
MXTRAIN_API uint64_t HashOfNgram(std::span<const TokenId> tokens);

}  // namespace mxtrain::text
