// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kinds that mxtrain makes itself: bytes, characters, words. Their texts are JSON objects with
// the keys "mxtrain_tokenizer" (version 1) and "kind".
#include "mxtrain/text/internal/json_node.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

inline constexpr const char* kSimpleKey = "mxtrain_tokenizer";
inline constexpr const char* kByteKind = "bytes";
inline constexpr const char* kCharacterKind = "characters";
inline constexpr const char* kWordKind = "words";

// The object that begins such a text.
FileJson SimpleJson(const char* kind);

TokenizerPtr ReadCharacterTokenizer(const JsonNode& root);
TokenizerPtr ReadWordTokenizer(const JsonNode& root);

}  // namespace mxtrain::text
