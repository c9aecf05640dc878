// SPDX-License-Identifier: Apache-2.0
// Files of several parts, against the whole text encoded at once.
#include "mxtrain/io/encode_texts.h"

#include <doctest/doctest.h>

#include "mxtrain/text/train_bpe.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::io;

std::string LinesOfText(size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i)
    text += format("{} sheep and {} more\n{}", i, i % 97 * (i % 89), i % 5 == 0 ? "\n" : "");
  return text;
}

// The tokens of each file, and in how many parts they came.
struct Encoded {
  std::vector<text::Ids> files;
  std::vector<int> parts;
};
Encoded EncodedFiles(const text::Tokenizer& tokenizer, const std::vector<std::string>& paths) {
  Encoded all;
  bool begins = true;
  int64_t bytes = 0;
  EncodeTexts(tokenizer, paths, [&](EncodedPart&& part) {
    if (begins) all.files.emplace_back(), all.parts.push_back(0);
    REQUIRE(part.file + 1 == all.files.size());
    all.files.back().insert(all.files.back().end(), part.ids.begin(), part.ids.end());
    ++all.parts.back();
    bytes += part.bytes;
    begins = part.last;
  });
  CHECK(begins);
  int64_t expected = 0;
  for (const std::string& path : paths) expected += std::ssize(TextFile(path).text());
  CHECK(bytes == expected);
  return all;
}

}  // namespace

TEST_CASE("tokens of files that come in parts are those of the whole texts, in order") {
  const TempDir dir;
  const std::vector<std::string> texts = {LinesOfText(7'000'000), "", "short", LinesOfText(50),
                                          LinesOfText(2'500'000) + "\xff end"};
  std::vector<std::string> paths;
  for (size_t i = 0; i < texts.size(); ++i) {
    dir.Write(format("{}.txt", i), texts[i]);
    paths.push_back(dir.path(format("{}.txt", i)));
  }
  const std::string_view view = texts[3];
  const text::TokenizerPtr tokenizers[] = {text::MakeByteTokenizer(),
                                           text::MakeWordTokenizer(Texts(paths).corpus(), {}),
                                           text::MakeCharacterTokenizer(Texts(paths).corpus()),
                                           text::TrainBpe({&view, 1}, {.vocabulary_size = 270})};
  for (const text::TokenizerPtr& tokenizer : tokenizers) {
    CAPTURE(tokenizer->Describe());
    const Encoded all = EncodedFiles(*tokenizer, paths);
    REQUIRE(all.files.size() == texts.size());
    for (size_t i = 0; i < texts.size(); ++i) CHECK(all.files[i] == tokenizer->Encode(texts[i]));
    CHECK(all.parts[0] > 4);
    CHECK(all.parts[1] == 1);
  }
}

TEST_CASE("a file without a place to cut is one part") {
  const TempDir dir;
  dir.Write("a.txt", std::string(3'000'000, 'a'));
  const std::vector<std::string> paths = {dir.path("a.txt")};
  CHECK(EncodedFiles(*text::MakeCharacterTokenizer("a"), paths).parts == std::vector<int>{1});
}

TEST_CASE("the first error in the order of the texts is told, with its file") {
  const TempDir dir;
  std::vector<std::string> paths;
  for (int i = 0; i < 40; ++i) {
    dir.Write(format("{:02}.txt", i), i == 7 || i == 8 ? "abc" : "ab");
    paths.push_back(dir.path(format("{:02}.txt", i)));
  }
  for (int trial = 0; trial < 10; ++trial) {
    const std::string message = MessageOf(
        [&] { EncodeTexts(*text::MakeCharacterTokenizer("ab"), paths, [](EncodedPart&&) {}); });
    CHECK(Says(message, "07.txt: the character 'c'"));
  }
  CHECK(Says(MessageOf([&] {
               EncodeTexts(*text::MakeByteTokenizer(), std::vector{dir.path("none.txt")},
                           [](EncodedPart&&) {});
             }),
             "none.txt"));
}

TEST_CASE("the last word of a file and the first of the next are two") {
  const TempDir dir;
  dir.Write("a.txt", "one two");
  dir.Write("b.txt", "three");
  const std::vector<std::string> paths = {dir.path("a.txt"), dir.path("b.txt")};
  const text::TokenizerPtr words = text::MakeWordTokenizer(Texts(paths).corpus(), {});
  CHECK(words->IdOf("two"));
  CHECK(words->IdOf("three"));
  CHECK(words->vocabulary_size() == 5);
}

}  // namespace mxtrain::test
