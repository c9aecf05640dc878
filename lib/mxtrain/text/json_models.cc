// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/json_models.h"

#include <optional>
#include <string_view>
#include <unordered_set>

#include "mxtrain/base/text.h"

namespace mxtrain::text {
namespace {

// Of a word that WordPiece cuts: it takes as many steps for each character in the worst case.
constexpr uint64_t kMostWordCharacters = 10'000;

void RefuseIfSet(const JsonNode& model, const char* key) {
  const auto node = model.Find(key);
  if (!node) return;
  const FileJson& value = node->value();
  const bool unset = value == false || value == "" || (value.is_number() && value == 0);
  if (!unset) node->Fail("it is not covered");
}

std::optional<TokenId> ReadUnknown(const JsonNode& model, const Vocabulary& vocabulary) {
  const auto node = model.Find("unk_token");
  if (!node) return std::nullopt;
  const auto id = vocabulary.IdOf(node->Text());
  if (!id) node->Fail("'" + Shortened(node->Text()) + "' is not in the vocabulary");
  return id;
}

// The two tokens of a merge.
std::pair<std::string_view, std::string_view> SidesOf(const FileJson& item, const JsonNode& node,
                                                      size_t index) {
  if (item.is_string()) {
    const std::string_view line = item.get_ref<const std::string&>();
    const size_t blank = line.find(' ');
    if (blank != std::string_view::npos && line.find(' ', blank + 1) == std::string_view::npos)
      return {line.substr(0, blank), line.substr(blank + 1)};
  } else if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
    return {item[0].get_ref<const std::string&>(), item[1].get_ref<const std::string&>()};
  }
  node.At(index).Fail("expected two tokens, \"a b\" or [\"a\", \"b\"]");
}

}  // namespace

std::string TypeOfModel(const JsonNode& model) {
  const auto node = model.Find("type");
  if (!node) return model.Find("merges") ? "BPE" : "WordPiece";
  const std::string& type = node->Text();
  if (type != "BPE" && type != "WordPiece") node->Fail("the model '" + type + "' is not covered");
  return type;
}

std::vector<std::pair<std::string, TokenId>> ReadModelVocabulary(const JsonNode& node) {
  std::vector<std::pair<std::string, TokenId>> tokens;
  tokens.reserve(node.Object().size());
  for (const auto& [token, id] : node.Object().items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMostIds)
      node.At(token).Number(kMostIds - 1);  // fails with the place
    tokens.emplace_back(token, id.get<TokenId>());
  }
  return tokens;
}

BpeConfig ReadBpeConfig(const JsonNode& model, const Vocabulary& vocabulary) {
  for (const char* const key :
       {"dropout", "byte_fallback", "continuing_subword_prefix", "end_of_word_suffix"})
    RefuseIfSet(model, key);
  BpeConfig config;
  config.unknown = ReadUnknown(model, vocabulary);
  config.fuse_unknown = model.BoolOr("fuse_unk", false);
  config.ignore_merges = model.BoolOr("ignore_merges", false);
  return config;
}

std::vector<BpeModel::Merge> ReadMerges(const JsonNode& node, const Vocabulary& vocabulary) {
  std::vector<BpeModel::Merge> merges;
  std::unordered_set<uint64_t> pairs;
  std::string whole;
  for (size_t i = 0; i < node.ArraySize(); ++i) {
    const auto [left, right] = SidesOf(node.value()[i], node, i);
    const auto id_of = [&](std::string_view token) {
      const auto id = vocabulary.IdOf(token);
      if (!id) node.At(i).Fail("'" + Shortened(token) + "' is not in the vocabulary");
      return *id;
    };
    // With an empty side a token would merge into itself.
    if (left.empty() || right.empty()) node.At(i).Fail("a token of the merge is empty");
    whole.assign(left).append(right);
    const BpeModel::Merge merge{id_of(left), id_of(right), id_of(whole)};
    if (!pairs.insert(uint64_t{merge.left} << 32 | merge.right).second)
      node.At(i).Fail("the same two tokens were merged before");
    merges.push_back(merge);
  }
  return merges;
}

WordPieceConfig ReadWordPieceConfig(const JsonNode& model, const Vocabulary& vocabulary) {
  WordPieceConfig config;
  const auto unknown = ReadUnknown(model, vocabulary);
  if (!unknown) model.Fail("the key 'unk_token' is missing");
  config.unknown = *unknown;
  config.prefix = model.TextOr("continuing_subword_prefix", config.prefix);
  config.most_characters =
      model.NumberOr("max_input_chars_per_word", kMostWordCharacters, config.most_characters);
  return config;
}

}  // namespace mxtrain::text
