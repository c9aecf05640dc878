// SPDX-License-Identifier: Apache-2.0
// The kinds that mxtrain makes itself, invalid UTF-8, and what all kinds promise.
#include "mxtrain/text/tokenizer.h"

#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/text/internal/utf8.h"
#include "mxtrain/text/train_bpe.h"
#include "tests/support/data_dir.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::text;

const std::vector<std::string_view> kSmallCorpus = {"low lower lowest new newer newest wide wider",
                                                    "the newest of the lowest, the widest!\n"};

TokenizerPtr SmallBpe() {
  return TrainBpe(kSmallCorpus, {.vocabulary_size = 300, .minimum_count = 2});
}

std::string RandomBytes(std::mt19937* random, size_t most) {
  std::string bytes((*random)() % (most + 1), '\0');
  for (char& c : bytes) c = static_cast<char>((*random)());
  return bytes;
}

// The same ids and the same text again.
void CheckCopies(const Tokenizer& tokenizer, std::string_view text) {
  const TokenizerPtr copy = TokenizerFromText(tokenizer.ToText(), "copy");
  CHECK(copy->ToText() == tokenizer.ToText());
  CHECK(copy->Encode(text) == tokenizer.Encode(text));
  CHECK(copy->Describe() == tokenizer.Describe());
  CHECK(copy->vocabulary_size() == tokenizer.vocabulary_size());
  CHECK(copy->special_tokens() == tokenizer.special_tokens());
  CHECK(copy->end_of_text() == tokenizer.end_of_text());
}

TEST_CASE("bytes are their own ids") {
  const TokenizerPtr bytes = MakeByteTokenizer();
  const std::string text("a\0\xff\x80z", 5);
  CHECK(bytes->Encode(text) == Ids{'a', 0, 255, 128, 'z'});
  CHECK(bytes->Decode(bytes->Encode(text)) == text);
  CHECK(bytes->vocabulary_size() == 256);
  CHECK(bytes->IdOf("\xff") == 255);
  CHECK_FALSE(bytes->IdOf("ab"));
  CHECK(bytes->TokenOf(65) == "A");
  CHECK_FALSE(bytes->end_of_text());
  CHECK(Says(MessageOf([&] { bytes->Decode(Ids{256}); }), "no token has the id 256"));
  CheckCopies(*bytes, text);
}

TEST_CASE("characters are those of the corpus, ordered; another one is an error") {
  const TokenizerPtr characters = MakeCharacterTokenizer("b\u00e9a\nb");
  CHECK(characters->Encode("ab\u00e9\n") == Ids{1, 2, 3, 0});
  CHECK(characters->Decode(Ids{3, 1}) == "\u00e9a");
  CHECK(characters->vocabulary_size() == 4);
  CHECK(characters->TokenOf(3) == "\u00e9");
  CHECK(characters->IdOf("\u00e9") == 3);
  CHECK_FALSE(characters->IdOf("x"));
  CHECK(Says(MessageOf([&] { characters->Encode("abc"); }), "the character 'c' (U+0063)"));
  CHECK(Says(MessageOf([&] { characters->Decode(Ids{4}); }), "no token has the id 4"));
  CheckCopies(*characters, "aba");
}

TEST_CASE("characters with an unknown token: it is id 0") {
  const TokenizerPtr characters = MakeCharacterTokenizer("ba", "<unk>");
  CHECK(characters->Encode("axb") == Ids{1, 0, 2});
  CHECK(characters->Encode("a<unk>") == Ids{1, 0, 0, 0, 0, 0});
  CHECK(characters->Encode("a<unk>", {.parse_special = true}) == Ids{1, 0});
  CHECK(characters->Decode(Ids{1, 0}) == "a<unk>");
  CHECK(characters->Decode(Ids{1, 0}, true) == "a");
  CHECK(characters->special_tokens() == std::vector<SpecialToken>{{"<unk>", 0}});
  CheckCopies(*characters, "axb");
}

TEST_CASE("words by falling count; a line gives its words and <eos>") {
  const TokenizerPtr words =
      MakeWordTokenizer(" b a  c\tb\n\nc b\n d <unk> e", {.minimum_count = 2});
  CHECK(words->ToText() == R"({"kind":"words","mxtrain_tokenizer":1,"words":["b","c"]})");
  CHECK(words->Encode("b a\nc\n") == Ids{2, 0, 1, 3, 1});
  CHECK(words->Encode("b") == Ids{2, 1});
  CHECK(words->Encode("\n") == Ids{1});
  CHECK(words->Encode("").empty());
  CHECK(words->Encode("<unk> <eos>") == Ids{0, 0, 1});
  CHECK(words->Encode("<unk> <eos>", {.parse_special = true}) == Ids{0, 1, 1});
  CHECK(words->Decode(Ids{2, 0, 1, 3, 1}) == "b <unk>\nc\n");
  CHECK(words->Decode(Ids{2, 0, 1, 3, 1}, true) == "b c");
  CHECK(words->end_of_text() == 1);
  CheckCopies(*words, "a b\nc");
  CHECK(MakeWordTokenizer("b a c b c b", {.maximum_size = 3})->vocabulary_size() == 3);
  CHECK(MakeWordTokenizer("b a c", {})->TokenOf(2) == "a");
  CHECK(Says(MessageOf([] { MakeWordTokenizer("a", {.minimum_count = 0}); }), "at least 1"));
  CHECK(Says(MessageOf([] { MakeWordTokenizer("a", {.maximum_size = 1}); }), "at least 2"));
}

TEST_CASE("texts of tokenizers that are damaged are refused with the key") {
  const auto why = [](const std::string& text) {
    return MessageOf([&] { TokenizerFromText(text, "t.json"); });
  };
  CHECK(why(R"({"mxtrain_tokenizer":2,"kind":"bytes"})") ==
        "t.json: mxtrain_tokenizer: the version 2 is unknown; this program reads version 1");
  CHECK(
      Says(why(R"({"mxtrain_tokenizer":1,"kind":"x"})"), "t.json: kind: the kind 'x' is unknown"));
  CHECK(why(R"({"mxtrain_tokenizer":1,"kind":"words","words":["a","a"]})") ==
        "t.json: words: the token 'a' is there twice");
  CHECK(why(R"({"mxtrain_tokenizer":1,"kind":"words","words":["a b"]})") ==
        "t.json: words[0]: 'a b' is not a word without blanks");
  CHECK(why(R"({"mxtrain_tokenizer":1,"kind":"words","words":3})") ==
        "t.json: words: expected an array, found number");
  CHECK(why(R"({"mxtrain_tokenizer":1,"kind":"characters","characters":"ba","unknown":""})") ==
        "t.json: characters: the characters do not rise at U+0061");
  CHECK(why("{]") == "t.json: it is not JSON at its byte 2");
}

TEST_CASE("invalid UTF-8 becomes U+FFFD for each maximal part, as in Python") {
  CHECK(WithReplacements("a\xff\xfe") == "a\ufffd\ufffd");
  CHECK(WithReplacements("\xe2\x82") == "\ufffd");
  CHECK(WithReplacements("\xe2\x82z") == "\ufffdz");
  CHECK(WithReplacements("\xf0\x9f\x98") == "\ufffd");
  CHECK(WithReplacements("\xed\xa0\x80") == "\ufffd\ufffd\ufffd");
  CHECK(WithReplacements("\xc0\x80") == "\ufffd\ufffd");
  CHECK(WithReplacements("\xf4\x90\x80\x80") == "\ufffd\ufffd\ufffd\ufffd");
  CHECK(WithReplacements("\xf0\x80\x80\x41") ==
        "\ufffd\ufffd\ufffd"
        "A");
  CHECK(WithReplacements("\u00e9\u20ac\U0001f600") == "\u00e9\u20ac\U0001f600");
  const TokenizerPtr words = MakeWordTokenizer("a\xff b", {});
  CHECK(words->Encode("a\xfe") == words->Encode("a\ufffd"));
  CHECK(words->Encode("a\xfe")[0] == words->IdOf("a\ufffd"));
}

TEST_CASE("every code point comes back as it was written") {
  for (uint32_t c = 0; c < kCodePoints; c += c < 0x3000 ? 1 : 97) {
    const bool surrogate = c >= 0xd800 && c <= 0xdfff;
    const std::string bytes = TextOfCodePoint(c);
    const CodePoint read = DecodeCodePoint(bytes);
    CHECK(read.valid == !surrogate);
    if (!surrogate) CHECK((read.value == c && read.bytes == bytes.size()));
  }
}

TEST_CASE("bytes and byte-level BPE keep random bytes") {
  std::mt19937 random(7);
  const TokenizerPtr bytes = MakeByteTokenizer(), bpe = SmallBpe();
  for (int i = 0; i < 300; ++i) {
    const std::string text = RandomBytes(&random, 200) + "newest \xff lowest";
    CHECK(bytes->Decode(bytes->Encode(text)) == text);
    CHECK(bpe->Decode(bpe->Encode(text)) == text);
  }
  // Invalid bytes are encoded by themselves.
  const Ids whole = bpe->Encode("new\xff\xfe lowest");
  Ids parts = bpe->Encode("new");
  for (const std::string_view part : {"\xff\xfe", " lowest"}) bpe->Encode(part, {}, &parts);
  CHECK(whole == parts);
}

TEST_CASE("one tokenizer serves many threads") {
  const TokenizerPtr bpe = SmallBpe();
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  std::mt19937 random(3);
  for (int i = 0; i < 50; ++i) {
    std::string text;
    for (int k = 0; k < 100; ++k)
      text += std::string(kSmallCorpus[0].substr(random() % 30, 7)) + ' ';
    expected.push_back(SmallBpe()->Encode(text));
    texts.push_back(std::move(text));
  }
  std::vector<int> wrong(5);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < texts.size(); ++i) wrong[t] += bpe->Encode(texts[i]) != expected[i];
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(5));
}

TEST_CASE("the words of the real Penn Treebank" * doctest::test_suite("text") * doctest::skip()) {
  const auto folder = DataDir("text/ptb");
  if (!folder) return;
  const std::string train = ReadFile(*folder + "/ptb.train.txt");
  const TokenizerPtr words = MakeWordTokenizer(train, {});
  CHECK(words->vocabulary_size() == 10'000);
  CHECK(words->Encode(train).size() == 929'589);
  CHECK(words->Encode(ReadFile(*folder + "/ptb.valid.txt")).size() == 73'760);
  CHECK(words->Encode(ReadFile(*folder + "/ptb.test.txt")).size() == 82'430);
}

}  // namespace
}  // namespace mxtrain::test
