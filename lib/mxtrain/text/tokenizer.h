// SPDX-License-Identifier: Apache-2.0
#pragma once
// From text to numbers and back. A tokenizer is immutable: every call may come from any thread. It
// is also a text (ToText), which checkpoints and token files (token_file.h) carry.
//
// Kinds: bytes, characters, words (made here from a corpus), GPT-2's files, and tokenizer.json of
// Hugging Face's `tokenizers`, whose parts that are not covered are refused by name.
//
// Text that is not valid UTF-8: `bytes` and byte-level BPE keep every byte (each longest run of
// invalid bytes is encoded by itself, between the texts before and after it). All others replace
// each maximal invalid part by U+FFFD, as Python's errors="replace" does.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::text {

using TokenId = uint32_t;
using Ids = std::vector<TokenId>;

struct SpecialToken {
  std::string text;
  TokenId id = 0;
  bool operator==(const SpecialToken&) const = default;
};

struct EncodeOptions {
  // Special tokens that stand in the text ("<|endoftext|>") become their ids. Otherwise they are
  // text like any other, as text from outside should be.
  bool parse_special = false;
  // Adds what the tokenizer puts around a text: "[CLS]" and "[SEP]" of BERT.
  bool add_special = false;
};

class MXTRAIN_API Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the ids of a text. Throws kData where the kind cannot encode it.
  virtual void Encode(std::string_view text, const EncodeOptions& options, Ids* ids) const = 0;
  Ids Encode(std::string_view text, const EncodeOptions& options = {}) const;
  // The last place, after the beginning, at which this text, and any longer one that begins with
  // it, can be cut: with default options the ids of the whole are those of the parts. 0: none is
  // known.
  virtual size_t LastCut(std::string_view /*text*/) const { return 0; }

  // The text of ids. The byte-level kinds give exactly the bytes that were encoded, unless a
  // normalizer changed them. Throws kData for an id that no token has.
  virtual std::string Decode(std::span<const TokenId> ids, bool skip_special = false) const = 0;

  // One more than the largest id: the number of rows of an embedding.
  virtual int64_t vocabulary_size() const = 0;
  virtual std::optional<TokenId> IdOf(std::string_view token) const = 0;
  // The token as the vocabulary writes it: byte-level BPE has "Ġthe" for " the". Throws kData for
  // an id that no token has.
  virtual std::string TokenOf(TokenId id) const = 0;
  // Ordered by id.
  virtual std::vector<SpecialToken> special_tokens() const = 0;
  // What separates documents, if there is such a token: "<|endoftext|>", "<eos>", ...
  virtual std::optional<TokenId> end_of_text() const = 0;
  // For people: "byte-level BPE of 50257 tokens".
  virtual std::string Describe() const = 0;
  // JSON from which TokenizerFromText makes the same tokenizer: the same ids, the same text.
  virtual std::string ToText() const = 0;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

// The inverse of ToText; also reads tokenizer.json. Errors (kData) begin with `file_name` and name
// the key.
MXTRAIN_API TokenizerPtr TokenizerFromText(std::string_view text, const std::string& file_name);
// The same from a file.
MXTRAIN_API TokenizerPtr LoadTokenizer(const std::string& path);

// 256 tokens, the id is the byte.
MXTRAIN_API TokenizerPtr MakeByteTokenizer();

// The texts of a corpus, of which none continues another.
using Corpus = std::span<const std::string_view>;

// One token for each code point of the corpus, ordered by code point; with `unknown` (such as
// "<unk>"), that token is id 0 and stands for every other one. Without, encoding one is an error.
MXTRAIN_API TokenizerPtr MakeCharacterTokenizer(Corpus corpus, const std::string& unknown = "");
inline TokenizerPtr MakeCharacterTokenizer(std::string_view text, const std::string& unknown = "") {
  return MakeCharacterTokenizer(Corpus(&text, 1), unknown);
}

// Words between ASCII white space. Each line, ended by a newline or by the end of a text that does
// not end in one, gives its words and then `<eos>`, as language models of Penn Treebank count.
// Ids: 0 is `<unk>`, 1 `<eos>`, then the words by falling count, equals by their bytes. Decoding
// joins words by blanks and writes a newline for `<eos>`.
struct WordOptions {
  int64_t minimum_count = 1;
  int64_t maximum_size = 0;  // of the vocabulary, with `<unk>` and `<eos>`; 0: no limit
};
MXTRAIN_API TokenizerPtr MakeWordTokenizer(Corpus corpus, const WordOptions& options);
inline TokenizerPtr MakeWordTokenizer(std::string_view text, const WordOptions& options) {
  return MakeWordTokenizer(Corpus(&text, 1), options);
}

// GPT-2's byte-level BPE: `encoder.json` (token to id) and `vocab.bpe` (merges).
MXTRAIN_API TokenizerPtr LoadGpt2Tokenizer(const std::string& encoder_json,
                                           const std::string& vocab_bpe);

}  // namespace mxtrain::text
