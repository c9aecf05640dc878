// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part "model" of tokenizer.json. Errors name the key; what is not covered is refused by name.
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/text/internal/bpe_model.h"
#include "mxtrain/text/internal/json_node.h"
#include "mxtrain/text/internal/vocabulary.h"
#include "mxtrain/text/internal/wordpiece_model.h"

namespace mxtrain::text {

// "BPE" or "WordPiece"; older files do not say which, but have merges or not.
std::string TypeOfModel(const JsonNode& model);

// An object from tokens to ids.
std::vector<std::pair<std::string, TokenId>> ReadModelVocabulary(const JsonNode& node);

BpeConfig ReadBpeConfig(const JsonNode& model, const Vocabulary& vocabulary);
// "a b" or ["a", "b"], ordered by rank.
std::vector<BpeModel::Merge> ReadMerges(const JsonNode& node, const Vocabulary& vocabulary);
WordPieceConfig ReadWordPieceConfig(const JsonNode& model, const Vocabulary& vocabulary);

}  // namespace mxtrain::text
