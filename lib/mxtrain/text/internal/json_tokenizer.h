// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hugging Face's tokenizer.json: normalizer, pre-tokenizer, model, post-processor, decoder.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mxtrain/base/recycler.h"
#include "mxtrain/text/internal/added_tokens.h"
#include "mxtrain/text/internal/bpe_model.h"
#include "mxtrain/text/internal/normalizer.h"
#include "mxtrain/text/internal/piece_cache.h"
#include "mxtrain/text/internal/post_processor.h"
#include "mxtrain/text/internal/pre_tokenizer.h"
#include "mxtrain/text/internal/wordpiece_model.h"

namespace mxtrain::text {

class JsonTokenizer final : public Tokenizer {
 public:
  // Of a document that ParseTokenizerJson made.
  explicit JsonTokenizer(const JsonNode& root);

  using Tokenizer::Encode;
  void Encode(std::string_view text, const EncodeOptions& options, Ids* ids) const override;
  size_t LastCut(std::string_view text) const override;
  std::string Decode(std::span<const TokenId> ids, bool skip_special) const override;
  int64_t vocabulary_size() const override { return vocabulary_.size(); }
  std::optional<TokenId> IdOf(std::string_view token) const override {
    return vocabulary_.IdOf(token);
  }
  std::string TokenOf(TokenId id) const override { return std::string(vocabulary_.TokenOf(id)); }
  std::vector<SpecialToken> special_tokens() const override { return special_; }
  std::optional<TokenId> end_of_text() const override { return end_of_text_; }
  std::string Describe() const override;
  std::string ToText() const override { return json_; }

 private:
  class ModelSink;
  // What one call has for itself.
  struct Scratch {
    PieceCache cache;
    BpeScratch bpe;
    void Clear() {}  // for Recycler: what was learnt stays
  };
  void ReadModel(const JsonNode& model, const Vocabulary& own);
  void ReadSpecialTokens(const std::vector<AddedToken>& added);
  void EncodeValid(std::string_view text, bool parse_special, PieceSink* sink, Ids* ids) const;
  bool IsSpecial(TokenId id) const;

  const std::string json_;
  Vocabulary vocabulary_;  // of the model, and the added tokens
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::optional<BpeModel> bpe_;  // exactly one of the two
  std::optional<WordPieceModel> word_piece_;
  AddedTokenFinder raw_, normalized_;
  std::map<TokenId, std::string> normal_forms_;  // of added tokens that are normalized
  TextFrame frame_;
  DecoderConfig decoder_;
  std::vector<SpecialToken> special_;
  std::optional<TokenId> end_of_text_;
  mutable Recycler<Scratch> scratch_;
};

}  // namespace mxtrain::text
