// SPDX-License-Identifier: Apache-2.0
// Byte pair encoding and its training, against the definitions written naively.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/text/internal/bpe_model.h"
#include "mxtrain/text/internal/byte_alphabet.h"
#include "mxtrain/text/internal/splitters.h"
#include "mxtrain/text/train_bpe.h"
#include "tests/support/data_dir.h"
#include "tests/support/error_message.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::text;
using Word = std::vector<std::string>;  // tokens as their bytes
using MergeList = std::vector<std::pair<std::string, std::string>>;

Word MergedEverywhere(const Word& word, const std::pair<std::string, std::string>& pair) {
  Word merged;
  for (size_t i = 0; i < word.size(); ++i) {
    const bool here = i + 1 < word.size() && word[i] == pair.first && word[i + 1] == pair.second;
    merged.push_back(here ? word[i] + word[i + 1] : word[i]);
    if (here) ++i;
  }
  return merged;
}

Word BytesOfWord(std::string_view piece) {
  Word word;
  for (const char c : piece) word.emplace_back(1, c);
  return word;
}

// The definition: the leftmost pair of the lowest rank is merged.
Word EncodedNaively(std::string_view piece, const MergeList& merges) {
  Word word = BytesOfWord(piece);
  for (;;) {
    std::pair best(merges.size(), size_t{0});  // rank and place
    for (size_t i = 0; i + 1 < word.size(); ++i) {
      const auto at = std::find(merges.begin(), merges.end(), std::pair(word[i], word[i + 1]));
      best = std::min(best, {static_cast<size_t>(at - merges.begin()), i});
    }
    if (best.first == merges.size()) return word;
    const auto place = word.begin() + static_cast<std::ptrdiff_t>(best.second);
    *place += *(place + 1);
    word.erase(place + 1);
  }
}

// All pairs are counted again for each merge. Gives the merges as long as no token arises in two
// ways, where the trainer has rules of its own: then `*ambiguous`.
MergeList TrainedNaively(const std::vector<std::string_view>& texts, size_t merges, int64_t minimum,
                         bool* ambiguous) {
  std::map<Word, int64_t> words;
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::string_view piece = text.substr(0, FirstGpt2Piece(text));
      ++words[BytesOfWord(piece)];
      text.remove_prefix(piece.size());
    }
  }
  // Ids order equals: the 256 bytes by their characters, then the merges as they come.
  std::map<std::string, uint32_t> ids;
  for (int byte = 0; byte < 256; ++byte) {
    ids[std::string(1, static_cast<char>(byte))] =
        CharacterOfByte(static_cast<unsigned char>(byte));
  }
  MergeList list;
  while (list.size() < merges) {
    std::map<std::pair<std::string, std::string>, int64_t> counts;
    for (const auto& [word, count] : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) counts[{word[i], word[i + 1]}] += count;
    }
    const auto order = [&](const auto& entry) {
      return std::tuple(-entry.second, ids[entry.first.first], ids[entry.first.second]);
    };
    const auto best =
        std::min_element(counts.begin(), counts.end(),
                         [&](const auto& a, const auto& b) { return order(a) < order(b); });
    if (best == counts.end() || best->second < minimum) break;
    const std::string merged = best->first.first + best->first.second;
    *ambiguous = *ambiguous || ids.contains(merged);
    ids.emplace(merged, static_cast<uint32_t>(0x1000 + list.size()));
    list.push_back(best->first);
    std::map<Word, int64_t> next;
    for (const auto& [word, count] : words) next[MergedEverywhere(word, list.back())] += count;
    words.swap(next);
  }
  return list;
}

MergeList MergesIn(const Tokenizer& tokenizer) {
  MergeList merges;
  const FileJson json = FileJson::parse(tokenizer.ToText());
  for (const FileJson& merge : json["model"]["merges"]) {
    merges.emplace_back(*BytesOfVisible(merge[0].get<std::string>()),
                        *BytesOfVisible(merge[1].get<std::string>()));
  }
  return merges;
}

std::string RandomWords(std::mt19937* random, size_t letters, size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    for (size_t i = (*random)() % 7 + 1; i > 0; --i)
      text += static_cast<char>('a' + (*random)() % letters);
    text += (*random)() % 5 ? " " : "\n";
  }
  return text;
}

Word TokensOf(const Tokenizer& tokenizer, const Ids& ids) {
  Word tokens;
  for (const TokenId id : ids) tokens.push_back(*BytesOfVisible(tokenizer.TokenOf(id)));
  return tokens;
}

TEST_CASE("training finds the merges that counting everything again finds") {
  std::mt19937 random(5);
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    const size_t letters = random() % 5 + 2;
    const std::string a = RandomWords(&random, letters, 300),
                      b = RandomWords(&random, letters, 200);
    const int64_t minimum = static_cast<int64_t>(random() % 3 + 1);
    bool ambiguous = false;
    const std::vector<std::string_view> texts = {a, b};
    const MergeList expected = TrainedNaively(texts, 12, minimum, &ambiguous);
    if (ambiguous) continue;
    ++compared;
    CHECK(MergesIn(*TrainBpe(texts, {.vocabulary_size = 256 + 12,
                                     .minimum_count = minimum,
                                     .special_tokens = {}})) == expected);
  }
  CHECK(compared > 20);
}

TEST_CASE("what training makes: ids, special tokens, an early end") {
  const std::vector<std::string_view> texts = {"aaa aaa ab ab ab"};
  const TokenizerPtr bpe = TrainBpe(
      texts,
      {.vocabulary_size = 1000, .minimum_count = 3, .special_tokens = {"<a>", "<|endoftext|>"}});
  CHECK(bpe->special_tokens() == std::vector<SpecialToken>{{"<a>", 0}, {"<|endoftext|>", 1}});
  CHECK(bpe->end_of_text() == 1);
  CHECK(bpe->TokenOf(2) == "!");
  CHECK(bpe->vocabulary_size() < 1000);
  CHECK(bpe->Decode(bpe->Encode("ab <a>", {.parse_special = true})) == "ab <a>");
  CHECK(bpe->Encode("<a>", {.parse_special = true}) == Ids{0});
  CHECK(bpe->Encode("<a>").size() == 3);
  CHECK(bpe->Decode(Ids{0, 2}, true) == "!");
  CHECK(bpe->Describe() == format("byte-level BPE of {} tokens", bpe->vocabulary_size()));
}

TEST_CASE("training refuses what it cannot do") {
  const std::vector<std::string_view> texts = {"a\xff"};
  const auto why = [&](TrainBpeOptions options) {
    return MessageOf([&] { TrainBpe(texts, options); });
  };
  CHECK(Says(why({}), "text 0 is not UTF-8 at its byte 1"));
  CHECK(Says(why({.vocabulary_size = 256}), "a vocabulary of 256 tokens is not possible"));
  CHECK(Says(why({.minimum_count = 0}), "must be at least 1"));
  CHECK(Says(why({.special_tokens = {"a", "a"}}), "'a' is named twice"));
  CHECK(Says(why({.special_tokens = {""}}), "is empty"));
}

TEST_CASE("short and long pieces are merged as defined") {
  std::mt19937 random(9);
  const std::string corpus = RandomWords(&random, 3, 4000);
  const std::vector<std::string_view> texts = {corpus};
  const TokenizerPtr bpe = TrainBpe(texts, {.vocabulary_size = 320, .special_tokens = {}});
  const MergeList merges = MergesIn(*bpe);
  CHECK(merges.size() == 64);
  for (int i = 0; i < 150; ++i) {
    std::string piece;
    for (size_t k = random() % (i % 3 == 0 ? 300 : 30) + 1; k > 0; --k)
      piece += static_cast<char>('a' + random() % 3);
    CHECK(TokensOf(*bpe, bpe->Encode(piece)) == EncodedNaively(piece, merges));
    CHECK(TokensOf(*bpe, bpe->Encode(piece)) == EncodedNaively(piece, merges));  // from the cache
  }
}

TEST_CASE("a piece of a megabyte is not merged in quadratic time") {
  const std::vector<std::string_view> texts = {"aaaaaaaa aaaaaaaa abababab abababab"};
  const TokenizerPtr bpe = TrainBpe(texts, {.vocabulary_size = 270});
  const std::string a(1 << 20, 'a');
  CHECK(bpe->Decode(bpe->Encode(a)) == a);
}

TEST_CASE("characters that no token is: skipped, unknown, or fused") {
  const Vocabulary vocabulary({{"a", 0}, {"b", 1}, {"ab", 2}, {"?", 3}});
  const std::vector<BpeModel::Merge> merges = {{0, 1, 2}};
  const auto encode = [&](BpeConfig config) {
    BpeScratch scratch;
    Ids ids;
    BpeModel(vocabulary, merges, config).Encode("abxyab", &scratch, &ids);
    return ids;
  };
  CHECK(encode({}) == Ids{2, 2});
  CHECK(encode({.unknown = 3}) == Ids{2, 3, 3, 2});
  CHECK(encode({.unknown = 3, .fuse_unknown = true}) == Ids{2, 3, 2});
  CHECK(encode({.byte_level = true, .unknown = 3, .fuse_unknown = true}) == Ids{2, 3, 2});
}

TEST_CASE("GPT-2's files give the ids of tokens.json" * doctest::test_suite("text") *
          doctest::skip()) {
  const auto folder = DataDir("text/gpt2");
  if (!folder) return;
  const TokenizerPtr gpt2 = LoadGpt2Tokenizer(*folder + "/encoder.json", *folder + "/vocab.bpe");
  CHECK(gpt2->vocabulary_size() == 50'257);
  CHECK(gpt2->end_of_text() == 50'256);
  CHECK(gpt2->Encode("<|endoftext|>", {.parse_special = true}) == Ids{50'256});
  CHECK(gpt2->TokenOf(262) == "\u0120the");
  const FileJson cases = FileJson::parse(ReadFile(*folder + "/tokens.json"));
  CHECK(cases.size() == 26);
  const TokenizerPtr copy = TokenizerFromText(gpt2->ToText(), "copy");
  for (const FileJson& item : cases) {
    const auto text = item["text"].get<std::string>();
    CAPTURE(text);
    CHECK(gpt2->Encode(text) == item["ids"].get<Ids>());
    CHECK(copy->Encode(text) == item["ids"].get<Ids>());
    CHECK(gpt2->Decode(item["ids"].get<Ids>()) == text);
  }
}

}  // namespace
}  // namespace mxtrain::test
