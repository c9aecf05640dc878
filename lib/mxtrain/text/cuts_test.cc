// SPDX-License-Identifier: Apache-2.0
// Where a text can be cut: the ids of a whole text are those of its parts.
#include <doctest/doctest.h>

#include <random>

#include "mxtrain/base/json.h"
#include "mxtrain/text/tokenizer.h"
#include "mxtrain/text/train_bpe.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::text;

constexpr std::string_view kPieces[] = {
    "a",        "b",    "the ",         "'s",       "1",
    " ",        "  ",   "\n",           "\n\n",     " \n",
    "\t",       "!",    "...",          "\r\n",     "\xff",
    "\xc3\xa9", "\xe3", "\xe3\x80\x80", "\xc2\xa0", "<|endoftext|>"};

std::string SomeText(std::mt19937* random, size_t pieces) {
  std::string text;
  for (size_t i = 0; i < pieces; ++i) text += kPieces[(*random)() % std::size(kPieces)];
  return text;
}

// Cuts the beginnings of random texts, of all lengths. Gives the number of cuts.
int CutTexts(const Tokenizer& tokenizer) {
  std::mt19937 random(7);
  int cuts = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const std::string text = SomeText(&random, 24);
    const Ids whole = tokenizer.Encode(text);
    for (size_t known = 1; known <= text.size(); ++known) {
      const size_t cut = tokenizer.LastCut(std::string_view(text).substr(0, known));
      if (cut == 0) continue;
      ++cuts;
      REQUIRE(cut <= known);
      Ids parts = tokenizer.Encode(std::string_view(text).substr(0, cut));
      const Ids second = tokenizer.Encode(std::string_view(text).substr(cut));
      parts.insert(parts.end(), second.begin(), second.end());
      CAPTURE(text);
      CAPTURE(cut);
      REQUIRE(parts == whole);
    }
  }
  return cuts;
}

std::string AllPieces() {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    for (const std::string_view piece : kPieces) {
      if (piece.find_first_of("\xff\xe3") == std::string_view::npos) text += piece;
    }
  }
  return text;
}

TokenizerPtr ByteLevel(int64_t size) {
  const std::string text = AllPieces();
  const std::string_view view = text;
  return TrainBpe({&view, 1}, {.vocabulary_size = size});
}

}  // namespace

TEST_CASE("a text is cut where the ids of the parts are those of the whole") {
  const std::string known = AllPieces() + "\xe3\x80\x80\xef\xbf\xbd";
  CHECK(CutTexts(*MakeByteTokenizer()) > 10'000);
  CHECK(CutTexts(*MakeCharacterTokenizer(known)) > 1000);
  CHECK(CutTexts(*MakeCharacterTokenizer("ab", "<unk>")) > 1000);
  CHECK(CutTexts(*MakeWordTokenizer(known, {})) > 1000);
  CHECK(CutTexts(*ByteLevel(300)) > 1000);
}

TEST_CASE("a tokenizer whose tokens may reach over the end of a line cuts nowhere") {
  FileJson json = FileJson::parse(ByteLevel(300)->ToText());
  REQUIRE(TokenizerFromText(json.dump(), "t.json")->LastCut("a\nb") == 1);
  CHECK(TokenizerFromText(json.dump(), "t.json")->LastCut("\nab") == 0);
  CHECK(TokenizerFromText(json.dump(), "t.json")->LastCut("a \nb") == 0);
  FileJson prefix = json;
  prefix["pre_tokenizer"]["add_prefix_space"] = true;
  CHECK(TokenizerFromText(prefix.dump(), "t.json")->LastCut("a\nb") == 0);
  FileJson added = json;
  added["added_tokens"].push_back({{"id", 900}, {"content", "a\n"}, {"special", false}});
  CHECK(TokenizerFromText(added.dump(), "t.json")->LastCut("a\nb") == 0);
  FileJson normalizer = json;
  normalizer["normalizer"] = {{"type", "NFC"}};
  CHECK(TokenizerFromText(normalizer.dump(), "t.json")->LastCut("a\nb") == 0);
}

}  // namespace mxtrain::test
