// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tokenizer.json puts around the ids of a text, and how it makes text of tokens again.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/text/internal/json_node.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

// The ids before and after a single text.
struct TextFrame {
  Ids before, after;
};
// Of the value of "post_processor". `id_of` gives the id of a token that the vocabulary has. Throws
// kData for a kind that is not covered, by its name, and for tokens or ids that are not there.
TextFrame ReadPostProcessor(const JsonNode& node,
                            const std::function<std::optional<TokenId>(std::string_view)>& id_of);

struct DecoderConfig {
  enum class Kind { kJoin, kByteLevel, kWordPiece };
  Kind kind = Kind::kJoin;  // with blanks between tokens
  std::string prefix;       // of word pieces that continue
  bool cleanup = false;     // no blanks before punctuation and English contractions
};
// Of the value of "decoder".
DecoderConfig ReadDecoder(const JsonNode& node);
// The text of tokens as the vocabulary writes them.
std::string DecodeTokens(const DecoderConfig& decoder, const std::vector<std::string_view>& tokens);

}  // namespace mxtrain::text
