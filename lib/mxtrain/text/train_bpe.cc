// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/train_bpe.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/text/internal/bpe_pairs.h"
#include "mxtrain/text/internal/byte_alphabet.h"
#include "mxtrain/text/internal/byte_level_json.h"
#include "mxtrain/text/internal/splitters.h"
#include "mxtrain/text/internal/utf8.h"
#include "mxtrain/text/internal/vocabulary.h"

namespace mxtrain::text {
namespace {

constexpr size_t kBytes = 256;
constexpr const char* kTraining = "training of BPE";  // in place of a file's name

using WordCounts = std::unordered_map<std::string_view, int64_t>;

WordCounts CountPieces(std::span<const std::string_view> texts) {
  WordCounts counts;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string_view text = texts[i];
    if (const size_t valid = ValidPrefix(text); valid < text.size())
      Throw(ErrorKind::kData, "{}: text {} is not UTF-8 at its byte {}", kTraining, i, valid);
    while (!text.empty()) {
      const std::string_view piece = text.substr(0, FirstGpt2Piece(text));
      ++counts[piece];
      text.remove_prefix(piece.size());
    }
  }
  return counts;
}

// Tokens get ids in the order in which they are added; one that is there keeps its id.
class GrowingVocabulary {
 public:
  TokenId Add(const std::string& token) {
    const auto [at, added] = ids_.emplace(token, static_cast<TokenId>(tokens_.size()));
    if (added) tokens_.push_back(token);
    return at->second;
  }
  size_t size() const { return tokens_.size(); }
  const std::string& operator[](TokenId id) const { return tokens_[id]; }
  FileJson ToJson() const {
    FileJson json = FileJson::object();
    for (TokenId id = 0; id < tokens_.size(); ++id) json[tokens_[id]] = id;
    return json;
  }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, TokenId> ids_;
};

std::vector<SpecialToken> AddSpecialTokens(const std::vector<std::string>& names,
                                           GrowingVocabulary* vocabulary) {
  std::vector<SpecialToken> special;
  for (const std::string& name : names) {
    const auto id = static_cast<TokenId>(vocabulary->size());
    if (name.empty() || !IsUtf8(name))
      Throw(ErrorKind::kConfig, "{}: the special token '{}' is {}", kTraining, EscapedBytes(name),
            name.empty() ? "empty" : "not UTF-8");
    if (vocabulary->Add(name) != id)
      Throw(ErrorKind::kConfig, "{}: the special token '{}' is named twice", kTraining, name);
    special.push_back({name, id});
  }
  return special;
}

// In the order of their characters.
std::array<TokenId, kBytes> AddBytes(GrowingVocabulary* vocabulary) {
  std::array<unsigned char, kBytes> bytes;
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<unsigned char>(i);
  std::sort(bytes.begin(), bytes.end(), [](unsigned char a, unsigned char b) {
    return CharacterOfByte(a) < CharacterOfByte(b);
  });
  std::array<TokenId, kBytes> ids;
  for (const unsigned char byte : bytes)
    ids[byte] = vocabulary->Add(VisibleBytes(std::string(1, static_cast<char>(byte))));
  return ids;
}

void CheckTrainOptions(const TrainBpeOptions& options) {
  const auto least = static_cast<int64_t>(kBytes + options.special_tokens.size());
  if (options.vocabulary_size < least || options.vocabulary_size > static_cast<int64_t>(kMostIds)) {
    Throw(ErrorKind::kConfig,
          "{}: a vocabulary of {} is not possible; it has the 256 bytes, {}, and at most {} tokens "
          "in all",
          kTraining, Counted(options.vocabulary_size, "token"),
          Counted(options.special_tokens.size(), "special token"), kMostIds);
  }
  if (options.minimum_count < 1)
    Throw(ErrorKind::kConfig, "{}: the minimum count of a pair is {}; it must be at least 1",
          kTraining, options.minimum_count);
}

// The merges by rank. Of a pair that was merged more than once the last place counts.
FileJson MergesToJson(const std::vector<TokenPair>& merges, const GrowingVocabulary& vocabulary) {
  IdMap last(merges.size());
  for (size_t i = 0; i < merges.size(); ++i)
    last.At(uint64_t{merges[i].left} << 32 | merges[i].right) = i;
  FileJson json = FileJson::array();
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right] = merges[i];
    if (last.Find(uint64_t{left} << 32 | right) == i)
      json.push_back({vocabulary[left], vocabulary[right]});
  }
  return json;
}

}  // namespace

TokenizerPtr TrainBpe(std::span<const std::string_view> texts, const TrainBpeOptions& options) {
  CheckTrainOptions(options);
  GrowingVocabulary vocabulary;
  const std::vector<SpecialToken> special = AddSpecialTokens(options.special_tokens, &vocabulary);
  const std::array<TokenId, kBytes> byte_ids = AddBytes(&vocabulary);
  BpePairs pairs;
  Ids symbols;
  for (const auto& [piece, count] : CountPieces(texts)) {
    symbols.clear();
    for (const char c : piece) symbols.push_back(byte_ids[static_cast<unsigned char>(c)]);
    pairs.AddWord(symbols, count);
  }
  pairs.Begin();
  std::vector<TokenPair> merges;
  while (static_cast<int64_t>(vocabulary.size()) < options.vocabulary_size) {
    const auto best = pairs.TakeBest(options.minimum_count);
    if (!best) break;
    merges.push_back(*best);
    pairs.Merge(*best, vocabulary.Add(vocabulary[best->left] + vocabulary[best->right]));
  }
  return MakeByteLevelTokenizer(vocabulary.ToJson(), MergesToJson(merges, vocabulary), special,
                                kTraining);
}

}  // namespace mxtrain::text
