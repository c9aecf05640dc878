// SPDX-License-Identifier: Apache-2.0
// The parts of tokenizer.json, one by one, and files that are damaged. Answers are those of
// `tokenizers`; tests/reference/check_tokenizers.py compares whole tokenizers with it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "mxtrain/base/json.h"
#include "mxtrain/text/internal/normalizer.h"
#include "mxtrain/text/internal/pre_tokenizer.h"
#include "mxtrain/text/tokenizer.h"
#include "tests/support/error_message.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::text;
using Strings = std::vector<std::string>;

const std::string kFile = "t.json";

std::string NormalizedBy(const std::string& json, std::string_view text) {
  const FileJson document = FileJson::parse(json);
  return Normalizer(JsonNode(document, kFile)).Apply(text);
}

Strings SplitBy(const std::string& json, std::string_view text) {
  struct Collector final : PieceSink {
    Strings pieces;
    void Put(std::string_view piece) override { pieces.emplace_back(piece); }
  } collector;
  const FileJson document = FileJson::parse(json);
  PreTokenizer(JsonNode(document, kFile)).Split(text, &collector);
  return collector.pieces;
}

Strings SplitByPattern(const std::string& behavior, bool invert) {
  const FileJson json = {{"type", "Split"},
                         {"pattern", {{"String", "-"}}},
                         {"behavior", behavior},
                         {"invert", invert}};
  return SplitBy(json.dump(), "the-final--countdown");
}

// BPE of a few characters, without a pre-tokenizer.
FileJson SmallJson() {
  return FileJson::parse(R"({
    "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "[U]": 3, "c": 4, " ": 5},
              "merges": ["a b"], "unk_token": "[U]"}})");
}

FileJson BertJson() {
  return FileJson::parse(R"({
    "added_tokens": [
      {"id": 0, "content": "[UNK]", "special": true}, {"id": 1, "content": "[CLS]", "special": true},
      {"id": 2, "content": "[SEP]", "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                   "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 10,
              "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##aff": 4, "##able": 5,
                        "a": 6, "##a": 7, ",": 8, "the": 9, "##m": 10, "do": 11, "not": 12}}})");
}

TokenizerPtr MakeOf(const FileJson& json) {
  return TokenizerFromText(json.dump(), kFile);
}

std::string WhyNotMade(const FileJson& json) {
  return MessageOf([&] { MakeOf(json); });
}

// What is said of SmallJson() with the value at a JSON pointer replaced.
std::string WhyNotWith(const std::string& pointer, const std::string& value) {
  FileJson json = SmallJson();
  json[FileJson::json_pointer(pointer)] = FileJson::parse(value);
  return WhyNotMade(json);
}

TEST_CASE("normalizers") {
  CHECK(NormalizedBy(R"({"type":"NFC"})", "e\u0301\ufb01") == "\u00e9\ufb01");
  CHECK(NormalizedBy(R"({"type":"NFD"})", "\u00e9\ufb01") == "e\u0301\ufb01");
  CHECK(NormalizedBy(R"({"type":"NFKC"})", "e\u0301\ufb01") ==
        "\u00e9"
        "fi");
  CHECK(NormalizedBy(R"({"type":"NFKD"})", "\u00e9\ufb01") ==
        "e\u0301"
        "fi");
  CHECK(NormalizedBy(R"({"type":"Lowercase"})", "A\u0130\u03a3\u00c9") == "ai\u0307\u03c3\u00e9");
  CHECK(NormalizedBy(R"({"type":"StripAccents"})", "e\u0301\u0903x") == "ex");
  CHECK(NormalizedBy(R"({"type":"Strip","strip_left":true,"strip_right":false})", " \u00a0 a ") ==
        "a ");
  CHECK(NormalizedBy(R"({"type":"Strip","strip_left":true,"strip_right":false})", "  ") == "");
  CHECK(NormalizedBy(R"({"type":"Strip","strip_left":false,"strip_right":true})", " a ") == " a");
  CHECK(NormalizedBy(R"({"type":"Prepend","prepend":"_"})", "a") == "_a");
  CHECK(NormalizedBy(R"({"type":"Prepend","prepend":"_"})", "") == "");
  CHECK(NormalizedBy(R"({"type":"Replace","pattern":{"String":"."},"content":"!!"})", "a.b.") ==
        "a!!b!!");
  CHECK(NormalizedBy(R"({"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "})", "a \n b") ==
        "a b");
  CHECK(
      NormalizedBy(
          R"({"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"},{"type":"Lowercase"}]})",
          "\u00c9A") == "ea");
}

TEST_CASE("BERT's normalizer cleans, sets Chinese characters apart, strips accents, lowers") {
  const auto bert = [](const std::string& options, std::string_view text) {
    return NormalizedBy(R"({"type":"BertNormalizer",)" + options + "}", text);
  };
  const std::string none =
      R"("clean_text":false,"handle_chinese_chars":false,"strip_accents":false,"lowercase":false)";
  CHECK(bert(none, "\u00c9\t\u4e2d") == "\u00c9\t\u4e2d");
  CHECK(bert(R"("lowercase":true)", std::string("\u00c9\t\0\u200bx\u4e2dy\ufffd", 15)) ==
        "e x \u4e2d y");
  CHECK(bert(R"("lowercase":false)", "\u00c9") == "\u00c9");
  CHECK(bert(R"("lowercase":false,"strip_accents":true)", "\u00c9") == "E");
  CHECK(bert(R"("lowercase":true,"strip_accents":false)", "\u00c9") == "\u00e9");
}

TEST_CASE("what becomes of matches") {
  CHECK(SplitByPattern("Removed", false) == Strings{"the", "final", "countdown"});
  CHECK(SplitByPattern("Isolated", false) == Strings{"the", "-", "final", "-", "-", "countdown"});
  CHECK(SplitByPattern("MergedWithPrevious", false) == Strings{"the-", "final-", "-", "countdown"});
  CHECK(SplitByPattern("MergedWithNext", false) == Strings{"the", "-final", "-", "-countdown"});
  CHECK(SplitByPattern("Contiguous", false) == Strings{"the", "-", "final", "--", "countdown"});
  CHECK(SplitByPattern("Removed", true) == Strings{"-", "-", "-"});
}

TEST_CASE("pre-tokenizers") {
  CHECK(SplitBy(R"({"type":"Whitespace"})", "Hey, you\u00a0there_1 ...!") ==
        Strings{"Hey", ",", "you", "there_1", "...!"});
  CHECK(SplitBy(R"({"type":"WhitespaceSplit"})", " a,b \n c ") == Strings{"a,b", "c"});
  CHECK(SplitBy(R"({"type":"Digits","individual_digits":true})", "a12b") ==
        Strings{"a", "1", "2", "b"});
  CHECK(SplitBy(R"({"type":"Digits","individual_digits":false})", "a12b") ==
        Strings{"a", "12", "b"});
  CHECK(SplitBy(R"({"type":"Punctuation"})", "a,\u3002b$") ==
        Strings{"a", ",", "\u3002", "b", "$"});
  CHECK(SplitBy(R"({"type":"BertPreTokenizer"})", " Hey,you!! ") ==
        Strings{"Hey", ",", "you", "!", "!"});
  CHECK(SplitBy(R"({"type":"CharDelimiterSplit","delimiter":"-"})", "a-b") == Strings{"a", "b"});
  CHECK(SplitBy(R"({"type":"ByteLevel","add_prefix_space":true})", "a b") == Strings{" a", " b"});
  CHECK(SplitBy(R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})", "a b") ==
        Strings{"a b"});
  CHECK(SplitBy(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},
                    {"type":"Digits","individual_digits":true}]})",
                "ab1 2") == Strings{"ab", "1", "2"});
  CHECK(SplitBy(R"({"type":"Whitespace"})", "").empty());
}

TEST_CASE("added tokens: special ones where asked, others always") {
  FileJson json = SmallJson();
  json["added_tokens"] = FileJson::parse(R"([
    {"id": 6, "content": "<s>", "special": true, "normalized": false},
    {"id": 7, "content": "abc", "normalized": false},
    {"id": 8, "content": "cc", "normalized": false, "lstrip": true, "rstrip": true},
    {"id": 9, "content": "ba", "normalized": false, "single_word": true}])");
  const TokenizerPtr t = MakeOf(json);
  CHECK(t->vocabulary_size() == 10);
  CHECK(t->Encode("a<s>b") == Ids{0, 3, 3, 3, 1});
  CHECK(t->Encode("a<s>b", {.parse_special = true}) == Ids{0, 6, 1});
  CHECK(t->Encode("aabcab") == Ids{0, 7, 2});
  // "ba" is found first, is inside a word, and what it covers is not searched again.
  CHECK(t->Encode("ababcab") == Ids{2, 2, 4, 2});
  CHECK(t->Encode("a  cc b") == Ids{0, 8, 1});
  CHECK(t->Encode("ba bab") == Ids{9, 5, 1, 2});
  CHECK(t->IdOf("<s>") == 6);
  CHECK(t->Decode(Ids{6, 0, 2}) == "<s> a ab");
  CHECK(t->Decode(Ids{6, 0, 2}, true) == "a ab");
}

TEST_CASE("added tokens that are normalized are found in normalized text") {
  FileJson json = SmallJson();
  json["normalizer"] = {{"type", "Lowercase"}};
  json["added_tokens"] = FileJson::parse(R"([
    {"id": 6, "content": "BC", "normalized": true}, {"id": 7, "content": "CA", "normalized": false}])");
  const TokenizerPtr t = MakeOf(json);
  CHECK(t->Encode("aBcCA") == Ids{0, 6, 7});
  CHECK(t->Encode("ca") == Ids{4, 0});
  CHECK(t->Decode(Ids{6, 7}) == "bc CA");
  CHECK(t->TokenOf(6) == "BC");
}

TEST_CASE("WordPiece cuts the longest tokens, and BERT's frame stands around") {
  const TokenizerPtr bert = MakeOf(BertJson());
  CHECK(bert->Describe() == "WordPiece of 13 tokens");
  CHECK(bert->Encode("Un\u00e0ffable, them") == Ids{3, 4, 5, 8, 9, 10});
  CHECK(bert->Encode("a xyz aaaaaaaaaa aaaaaaaaaaa") == Ids{6, 0, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0});
  CHECK(bert->Encode("the", {.add_special = true}) == Ids{1, 9, 2});
  CHECK(bert->Encode("[SEP]", {.parse_special = true}) == Ids{2});
  CHECK(bert->Decode(Ids{1, 3, 4, 5, 8, 9, 10, 2}) == "[CLS] unaffable, them [SEP]");
  CHECK(bert->Decode(Ids{1, 3, 4, 5, 8, 2}, true) == "unaffable,");
  CHECK(bert->end_of_text() == 2);
}

TEST_CASE("templates of one text") {
  FileJson json = BertJson();
  json["post_processor"] = FileJson::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"SpecialToken": {"id": "[CLS]", "type_id": 0}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
                       "[SEP]": {"id": "[SEP]", "ids": [2, 0], "tokens": ["[SEP]", "[UNK]"]}}})");
  CHECK(MakeOf(json)->Encode("the", {.add_special = true}) == Ids{1, 9, 2, 0, 1});
  FileJson twice = json;
  twice["post_processor"]["single"][0] = twice["post_processor"]["single"][1];
  CHECK(WhyNotMade(twice) ==
        "t.json: post_processor.single: a template needs the sequence 'A' once");
  json["post_processor"]["special_tokens"]["[SEP]"]["ids"][0] = 1;
  CHECK(WhyNotMade(json) ==
        "t.json: post_processor.special_tokens.[SEP]: the vocabulary does not have the token "
        "'[SEP]' with the id 1");
}

TEST_CASE("a file that is not written with care is refused with its name and the key") {
  CHECK(WhyNotMade(SmallJson()).empty());
  CHECK(WhyNotWith("/model/merges/0", R"("a x")") ==
        "t.json: model.merges[0]: 'x' is not in the vocabulary");
  CHECK(WhyNotWith("/model/merges/0", R"("b a")") ==
        "t.json: model.merges[0]: 'ba' is not in the vocabulary");
  CHECK(WhyNotWith("/model/merges/1", R"(["a", "b"])") ==
        "t.json: model.merges[1]: the same two tokens were merged before");
  CHECK(Says(WhyNotWith("/model/merges/0", R"("a b c")"), "model.merges[0]: expected two tokens"));
  CHECK(Says(WhyNotWith("/model/merges/0", "7"), "model.merges[0]: expected two tokens"));
  CHECK(WhyNotWith("/model/merges/0", R"(["", "a"])") ==
        "t.json: model.merges[0]: a token of the merge is empty");
  CHECK(WhyNotWith("/model/vocab/b", "0") ==
        "t.json: model.vocab: the tokens 'a' and 'b' have the same id 0");
  CHECK(Says(WhyNotWith("/model/vocab/b", "4294967295"),
             "t.json: model.vocab.b: expected an integer from 0"));
  CHECK(Says(WhyNotWith("/model/vocab/b", "-1"), "model.vocab.b: expected an integer"));
  CHECK(Says(WhyNotWith("/model/vocab/b", R"("1")"), "model.vocab.b: expected an integer"));
  CHECK(WhyNotWith("/model/vocab", "[]") == "t.json: model.vocab: expected an object, found array");
  CHECK(WhyNotWith("/model/merges", "{}") ==
        "t.json: model.merges: expected an array, found object");
  CHECK(WhyNotWith("/model/unk_token", R"("no")") ==
        "t.json: model.unk_token: 'no' is not in the vocabulary");
  CHECK(WhyNotWith("/model/fuse_unk", "1") ==
        "t.json: model.fuse_unk: expected true or false, found number");
  CHECK(WhyNotWith("/model", "null") == "t.json: model: expected an object, found null");
  CHECK(WhyNotMade(FileJson::array()) == "t.json: expected an object, found array");
  CHECK(WhyNotWith("/added_tokens", R"([{"id": 6, "content": ""}])") ==
        "t.json: added_tokens[0]: the token is empty");
  CHECK(WhyNotWith("/added_tokens", R"([{"id": 6, "content": "a"}])") ==
        "t.json: added_tokens[0]: the token 'a' has the id 6, and in model.vocab the id 0");
  CHECK(Says(WhyNotWith("/added_tokens", R"([{"id": 0, "content": "x"}])"), "have the same id 0"));
  CHECK(WhyNotWith("/added_tokens", R"([{"id": 6, "content": "x"}, {"id": 7, "content": "x"}])") ==
        "t.json: added_tokens[1]: the token 'x' is there twice");
  CHECK(WhyNotWith("/added_tokens", R"([{"content": "x"}])") ==
        "t.json: added_tokens[0]: the key 'id' is missing");
}

TEST_CASE("what is not covered is refused by its name") {
  CHECK(WhyNotWith("/model/type", R"("Unigram")") ==
        "t.json: model.type: the model 'Unigram' is not covered");
  CHECK(WhyNotWith("/model/byte_fallback", "true") ==
        "t.json: model.byte_fallback: it is not covered");
  CHECK(WhyNotWith("/model/byte_fallback", "false").empty());
  CHECK(WhyNotWith("/model/dropout", "0.1") == "t.json: model.dropout: it is not covered");
  CHECK(WhyNotWith("/model/end_of_word_suffix", R"("</w>")") ==
        "t.json: model.end_of_word_suffix: it is not covered");
  CHECK(WhyNotWith("/normalizer", R"({"type": "Precompiled"})") ==
        "t.json: normalizer: the normalizer 'Precompiled' is not covered");
  CHECK(WhyNotWith("/pre_tokenizer", R"({"type": "Metaspace"})") ==
        "t.json: pre_tokenizer: the pre-tokenizer 'Metaspace' is not covered");
  CHECK(Says(
      WhyNotWith("/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"},
                         {"type": "Digits"}]})"),
      "pre_tokenizer.pretokenizers[1]: a pre-tokenizer after ByteLevel"));
  CHECK(Says(WhyNotWith("/pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "\\R"},
                         "behavior": "Isolated", "invert": false})"),
             "t.json: pre_tokenizer.pattern: '\\R' in the pattern"));
  CHECK(Says(WhyNotWith("/pre_tokenizer", R"({"type": "Split", "pattern": {"String": "a"},
                         "behavior": "Other"})"),
             "pre_tokenizer.behavior: the behavior 'Other' is not covered"));
  CHECK(WhyNotWith("/decoder", R"({"type": "Fuse"})") ==
        "t.json: decoder: the decoder 'Fuse' is not covered");
  CHECK(WhyNotWith("/post_processor", R"({"type": "Other"})") ==
        "t.json: post_processor: the post-processor 'Other' is not covered");
}

TEST_CASE("JSON that a parser would take silently is refused") {
  const auto why = [](const std::string& text) {
    return MessageOf([&] { TokenizerFromText(text, kFile); });
  };
  CHECK(why(R"({"model": {"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []}})") ==
        "t.json: the key 'a' is there twice in one object");
  CHECK(why(std::string(100'000, '[')) == "t.json: it is nested more than 64 deep");
  CHECK(why("") == "t.json: it is not JSON at its byte 1");
  CHECK(why("{\"a\": \"\xff\"}").starts_with("t.json: it is not JSON at its byte"));
}

TEST_CASE("a normalizer cannot make a small text huge") {
  FileJson json = SmallJson();
  const FileJson tenfold = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaaaa"}};
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", FileJson(20, tenfold)}};
  const TokenizerPtr t = MakeOf(json);
  CHECK(Says(MessageOf([&] { t->Encode("aaa"); }), "when it is normalized"));
}

}  // namespace
}  // namespace mxtrain::test
