// SPDX-License-Identifier: Apache-2.0
// Texts that come token by token, and the windows of long ones.
#include "app/inference/text_stream.h"

#include <doctest/doctest.h>

#include "app/inference/text_generator.h"

namespace mxtrain::inference {
namespace {

// What a stream gives for the bytes of a text, byte by byte, with a bar after each; then the rest.
std::string BytesOf(const std::string& text, const std::vector<std::string>& stops) {
  const text::TokenizerPtr bytes = text::MakeByteTokenizer();
  TextStream stream(*bytes, stops, bytes->Encode("prompt"));
  std::string given;
  for (const char c : text) {
    if (!stream.Add(static_cast<unsigned char>(c))) {
      given += "stop ";
      break;
    }
    given += std::string(stream.Next()) + "|";
  }
  return given + std::string(stream.Last());
}

}  // namespace

TEST_CASE("a character is given when it is whole") {
  CHECK(BytesOf("aé€😀z", {}) == "a||é|||€||||😀|z|");
  CHECK(BytesOf("ab\xF0\x9F", {}) == "a|b|||");  // the last one is not finished
  CHECK(BytesOf("\x80z", {}) == "\x80|z|");      // no character begins so
}

TEST_CASE("a text ends before a stop, of which nothing is given") {
  CHECK(BytesOf("one end.", {"end"}) == "o|n||e |||stop ");
  CHECK(BytesOf("one", {"end"}) == "o|n||e");  // what could have become a stop is text
  CHECK(BytesOf("enended", {"end"}) == "||en||stop ");
  CHECK(BytesOf("abcabd", {"abd", "c"}) == "||stop ab");
  CHECK(BytesOf("xé", {"\xC3\xA9"}) == "x||stop ");
}

TEST_CASE("words are given with the blanks between them, also after the prompt") {
  const text::TokenizerPtr words = text::MakeWordTokenizer("one two three four\n", {});
  TextStream stream(*words, {}, {*words->IdOf("one")});
  std::string given;
  for (const char* word :
       {"two", "<eos>", "three", "four", "one", "two", "three", "four", "one", "two", "four"}) {
    CHECK(stream.Add(*words->IdOf(word)));
    given += std::string(stream.Next()) + "|";
  }
  given += stream.Last();
  CHECK(stream.ids().size() == 12);
  std::string whole = words->Decode(stream.ids());
  CHECK("one" + stream.text() == whole);
  std::erase(given, '|');
  CHECK(given == stream.text());
}

TEST_CASE("a window fills again when a text has become longer than it") {
  const WindowRule half{8, 4}, sliding{8, 7}, least{8, 1};
  for (const int64_t tokens : {1, 7, 8}) {
    CHECK(half.Begin(tokens) == 0);
    CHECK(sliding.Begin(tokens) == 0);
  }
  CHECK(half.Begin(9) == 4);
  CHECK(half.Begin(12) == 4);
  CHECK(half.Begin(13) == 8);
  for (int64_t tokens = 9; tokens < 50; ++tokens) {
    CHECK(sliding.Begin(tokens) == tokens - 8);
    for (const WindowRule& rule : {half, sliding, least}) {
      const int64_t seen = tokens - rule.Begin(tokens);
      CHECK(seen > rule.keep);
      CHECK(seen <= rule.length);
    }
  }
}

}  // namespace mxtrain::inference
