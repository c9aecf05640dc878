// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/text_encoder.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::text;

Ids Encoded(const TextEncoder& encoder, std::string_view text) {
  Ids ids;
  encoder.Encode(text, &ids);
  return ids;
}

TextEncoder WordsOf(std::string_view corpus, const EncoderOptions& options = {}) {
  return {MakeWordTokenizer(TextEncoder::Prepared(corpus, options), {}), options};
}

TEST_CASE("a text is the words of one line, whose end has no id") {
  const TextEncoder encoder = WordsOf("a b b c c c\n");  // c is 2, b 3, a 4
  CHECK(Encoded(encoder, "a b c") == Ids{4, 3, 2});
  CHECK(Encoded(encoder, "a\nb\n\nc\n") == Ids{4, 3, 2});
  CHECK(Encoded(encoder, "zebra a") == Ids{0, 4});
  CHECK(Encoded(encoder, "").empty());
  CHECK(Encoded(encoder, " \t\n").empty());
  CHECK(encoder.padding() == 5);
  CHECK(encoder.num_ids() == 6);
}

TEST_CASE("letters become small and punctuation marks words, where asked for") {
  CHECK(TextEncoder::Prepared("Is It, ÉTÉ?", {.lowercase = true}) == "is it, été?");
  CHECK(TextEncoder::Prepared("A,b.", {.split_punctuation = true}) == "A , b . ");
  CHECK(TextEncoder::Prepared("A,«b»", {.lowercase = true, .split_punctuation = true}) ==
        "a ,  « b » ");
  CHECK(TextEncoder::Prepared("A\xff,", {}) == "A\xff,");
  CHECK(TextEncoder::Prepared("A\xff", {.lowercase = true}) == "a\xef\xbf\xbd");
  const TextEncoder encoder = WordsOf("Yes, yes.", {.lowercase = true, .split_punctuation = true});
  CHECK(Encoded(encoder, "YES,") == Encoded(encoder, "yes ,"));
}

// The constants and the example of the FNV authors: 64-bit FNV-1a of "foobar" is 85944171f73967e8.
TEST_CASE("n-grams are hashed by FNV-1a over the bytes of their ids") {
  CHECK(HashOfNgram({}) == 14695981039346656037U);
  uint64_t expected = 14695981039346656037U;
  for (const unsigned byte : {0x66U, 0x6fU, 0x6fU, 0x62U, 0x61U, 0x72U, 0U, 0U})
    expected = (expected ^ byte) * 1099511628211U;
  const Ids tokens = {0x626f6f66, 0x7261};  // "foob", "ar" and two zeros, the lowest byte first
  CHECK(HashOfNgram(tokens) == expected);
}

TEST_CASE("n-grams follow the tokens, shorter ones first") {
  const EncoderOptions options{.ngrams = 3, .buckets = 1000};
  const TextEncoder encoder = WordsOf("a b c d", options);
  const Ids ids = Encoded(encoder, "a b c d");
  REQUIRE(ids.size() == 4 + 3 + 2);
  const Ids tokens(ids.begin(), ids.begin() + 4);
  for (size_t i = 0; i < 3; ++i)
    CHECK(ids[4 + i] == 6 + HashOfNgram(std::span(tokens).subspan(i, 2)) % 1000);
  for (size_t i = 0; i < 2; ++i)
    CHECK(ids[7 + i] == 6 + HashOfNgram(std::span(tokens).subspan(i, 3)) % 1000);
  CHECK(encoder.padding() == 1006);
  CHECK(Encoded(encoder, "a").size() == 1);
  CHECK(encoder.Describe() == "6 words with <unk> and <eos>, 2- to 3-grams in 1000 buckets");
  CHECK_THROWS_WITH(WordsOf("a", {.ngrams = 2}), doctest::Contains("n-grams need buckets"));
  CHECK_THROWS_WITH(WordsOf("a", {.buckets = 5}), doctest::Contains("they are for n-grams"));
}

TEST_CASE("an encoder is a text, from which the same one is made") {
  const EncoderOptions options{
      .lowercase = true, .split_punctuation = true, .ngrams = 2, .buckets = 77};
  const TextEncoder encoder = WordsOf("One fish, two fish.", options),
                    again = TextEncoder::FromText(encoder.ToText(), "model");
  CHECK(again.ToText() == encoder.ToText());
  CHECK(again.num_ids() == encoder.num_ids());
  CHECK(Encoded(again, "Two FISH!") == Encoded(encoder, "Two FISH!"));
  CHECK_THROWS_WITH(TextEncoder::FromText("{}", "model"),
                    "model: the key 'mxtrain_text_encoder' is missing");
  CHECK_THROWS_WITH(
      TextEncoder::FromText(R"({"mxtrain_text_encoder": 2})", "model"),
      "model: mxtrain_text_encoder: the version 2 is unknown; this program reads version 1");
  std::string wrong = encoder.ToText();
  wrong.replace(wrong.find("\"buckets\":77"), 12, "\"buckets\":0");
  CHECK_THROWS_WITH(TextEncoder::FromText(wrong, "model"), "model: ngrams: 2 with 0 buckets");
}

constexpr const char* kFramingTokenizer = R"({"version": "1.0",
    "added_tokens": [{"id": 0, "content": "[CLS]", "special": true}, {"id": 1, "content": "[SEP]", "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [0], "tokens": ["[CLS]"]},
                         "[SEP]": {"id": "[SEP]", "ids": [1], "tokens": ["[SEP]"]}}},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "a": 3, "b": 4, "##s": 5}}})";

TEST_CASE("special tokens are around a text, also around one that is cut") {
  const TextEncoder encoder(TokenizerFromText(kFramingTokenizer, "t.json"),
                            {.special_tokens = true});
  CHECK(Encoded(encoder, "a bs") == Ids{0, 3, 4, 5, 1});
  CHECK(Encoded(encoder, "") == Ids{0, 1});
  CHECK(encoder.padding() == 6);
  const auto cut = [&](const char* text, int64_t length) {
    Ids ids = Encoded(encoder, text);
    encoder.Cut(length, &ids);
    return ids;
  };
  CHECK(cut("a bs", 5) == Ids{0, 3, 4, 5, 1});
  CHECK(cut("a bs", 4) == Ids{0, 3, 4, 1});
  CHECK(cut("a bs", 2) == Ids{0, 1});
  CHECK(cut("a bs", 1) == Ids{1});
  const TextEncoder again = TextEncoder::FromText(encoder.ToText(), "model");
  CHECK(Encoded(again, "b") == Ids{0, 4, 1});
  const TextEncoder bare(TokenizerFromText(kFramingTokenizer, "t.json"), {});
  CHECK(Encoded(bare, "a bs") == Ids{3, 4, 5});
  Ids ids = Encoded(bare, "a bs");
  bare.Cut(2, &ids);
  CHECK(ids == Ids{3, 4});
  CHECK_THROWS_WITH(TextEncoder(MakeByteTokenizer(), {.special_tokens = true}),
                    doctest::Contains("puts none around a text"));
  CHECK_THROWS_WITH(TextEncoder(TokenizerFromText(kFramingTokenizer, "t.json"),
                                {.ngrams = 2, .buckets = 9, .special_tokens = true}),
                    "special_tokens = 'True' is not for ngrams = '2'");
}

TEST_CASE("other tokenizers keep the ends of lines") {
  const TextEncoder bytes(MakeByteTokenizer(), {});
  CHECK(Encoded(bytes, "a\n") == Ids{97, 10});
  CHECK(bytes.padding() == 256);
  const TextEncoder characters(MakeCharacterTokenizer("ab\n"), {});
  CHECK(Encoded(characters, "b\n").size() == 2);
  CHECK_THROWS_AS(Encoded(characters, "z"), Error);
}

}  // namespace
}  // namespace mxtrain::test
