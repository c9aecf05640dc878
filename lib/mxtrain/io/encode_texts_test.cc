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

struct Encoded {
  std::vector<text::Ids> texts;  // without what stands between them
  int parts = 0;                 // in which they came
};
Encoded EncodedTexts(const text::Tokenizer& tokenizer, const TextPaths& paths) {
  Encoded all;
  text::Ids ids;  // of a text that has not ended
  int64_t bytes = 0;
  EncodeTexts(tokenizer, paths, [&](EncodedPart&& part) {
    bytes += part.bytes;
    all.parts += part.bytes > 0;
    for (size_t i = 0; i <= part.ids.size(); ++i) {
      for (const size_t end : part.ends) {
        if (end == i) all.texts.push_back(std::exchange(ids, {}));
      }
      if (i < part.ids.size()) ids.push_back(part.ids[i]);
    }
  });
  CHECK(ids.empty());
  int64_t expected = 0;
  for (const std::string& path : paths.files) expected += std::ssize(TextFile(path).text());
  CHECK(bytes == expected);
  for (size_t i = 0; i + 1 < all.texts.size(); ++i) {
    const std::optional<text::TokenId> separator = SeparatorOf(tokenizer);
    if (!separator) continue;
    REQUIRE(!all.texts[i].empty());
    CHECK(all.texts[i].back() == *separator);
    all.texts[i].pop_back();
  }
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
                                           text::MakeWordTokenizer(Texts({paths}).corpus(), {}),
                                           text::MakeCharacterTokenizer(Texts({paths}).corpus()),
                                           text::TrainBpe({&view, 1}, {.vocabulary_size = 270})};
  for (const text::TokenizerPtr& tokenizer : tokenizers) {
    CAPTURE(tokenizer->Describe());
    const Encoded all = EncodedTexts(*tokenizer, {paths});
    REQUIRE(all.texts.size() == texts.size());
    for (size_t i = 0; i < texts.size(); ++i) CHECK(all.texts[i] == tokenizer->Encode(texts[i]));
    CHECK(all.parts > 4 + 3);
  }
}

TEST_CASE("a file without a place to cut is one part") {
  const TempDir dir;
  dir.Write("a.txt", std::string(3'000'000, 'a'));
  const std::vector<std::string> paths = {dir.path("a.txt")};
  CHECK(EncodedTexts(*text::MakeCharacterTokenizer("a"), {paths}).parts == 1);
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
        [&] { EncodeTexts(*text::MakeCharacterTokenizer("ab"), {paths}, [](EncodedPart&&) {}); });
    CHECK(Says(message, "07.txt: the character 'c'"));
  }
  CHECK(Says(MessageOf([&] {
               EncodeTexts(*text::MakeByteTokenizer(), {{dir.path("none.txt")}},
                           [](EncodedPart&&) {});
             }),
             "none.txt"));
}

TEST_CASE("the last word of a file and the first of the next are two") {
  const TempDir dir;
  dir.Write("a.txt", "one two");
  dir.Write("b.txt", "three");
  const std::vector<std::string> paths = {dir.path("a.txt"), dir.path("b.txt")};
  const text::TokenizerPtr words = text::MakeWordTokenizer(Texts({paths}).corpus(), {});
  CHECK(words->IdOf("two"));
  CHECK(words->IdOf("three"));
  CHECK(words->vocabulary_size() == 5);
}

TEST_CASE("each row of a table or of JSON lines is a text") {
  const TempDir dir;
  std::string lines, table = "n,body,head\n";
  std::vector<std::string> texts;
  for (int i = 0; i < 40'000; ++i) {
    texts.push_back(format("row {} of \"many\", and\tmore", i));
    lines += format("{}{{\"body\": \"row {} of \\\"many\\\", and\\tmore\", \"n\": {}}}\n",
                    i % 1000 == 7 ? "\n{\"body\": \"\"}\n" : "", i, i);
    table += format("{},\"row {} of \"\"many\"\", and\tmore\",\n", i, i);
  }
  dir.Write("a.jsonl", lines);
  dir.Write("b.csv", table);
  dir.Write("c.txt", "the end");
  const text::TokenizerPtr bytes = text::MakeByteTokenizer();
  for (const bool json : {true, false}) {
    CAPTURE(json);
    const TextPaths paths{{dir.path(json ? "a.jsonl" : "b.csv"), dir.path("c.txt")}, {"body"}};
    std::vector<std::string> read;
    text::Ids ids;
    int parts = 0;
    EncodeTexts(*bytes, paths, [&](EncodedPart&& part) {
      ++parts;
      for (size_t i = 0, end = 0; i <= part.ids.size(); ++i) {
        for (; end < part.ends.size() && part.ends[end] == i; ++end)
          read.push_back(bytes->Decode(std::exchange(ids, {})));
        if (i < part.ids.size()) ids.push_back(part.ids[i]);
      }
    });
    REQUIRE(read.size() == texts.size() + 1);
    CHECK(std::equal(texts.begin(), texts.end(), read.begin()));
    CHECK(read.back() == "the end");
    CHECK(parts > 2);
    const Texts all(paths);
    REQUIRE(all.corpus().size() == texts.size() + 1);
    CHECK(all.corpus()[17] == texts[17]);
    CHECK(Says(all.NameOf(5), json ? "a.jsonl:6" : "b.csv:7"));
  }
  dir.Write("d.jsonl", lines + "{\"body\": 7}\n");
  CHECK(Says(MessageOf([&] {
               EncodeTexts(*bytes, {{dir.path("d.jsonl")}, {"body"}}, [](EncodedPart&&) {});
             }),
             "d.jsonl:40081: 'body' is not a text"));
}

TEST_CASE("between two texts stands the end of a text") {
  const TempDir dir;
  dir.Write("a.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"\"}\n{\"text\": \"b\"}\n");
  dir.Write("b.txt", "a");
  const std::string_view corpus = "ab ab";
  const text::TokenizerPtr bpe = text::TrainBpe({&corpus, 1}, {.vocabulary_size = 257});
  const text::TokenId end = bpe->end_of_text().value();
  text::Ids ids, wanted;
  std::vector<size_t> ends;
  EncodeTexts(*bpe, {{dir.path("a.jsonl"), dir.path("b.txt")}}, [&](EncodedPart&& part) {
    for (const size_t at : part.ends) ends.push_back(ids.size() + at);
    ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  });
  for (const char* text : {"ab", "b", "a"}) {
    if (!wanted.empty()) wanted.push_back(end);
    for (const text::TokenId id : bpe->Encode(text)) wanted.push_back(id);
  }
  CHECK(ids == wanted);
  REQUIRE(ends.size() == 3);
  CHECK(ids[ends[0] - 1] == end);
  CHECK(ids[ends[1] - 1] == end);
  CHECK(ends[2] == ids.size());
}

TEST_CASE("from any place between two parts the rest is the same" * doctest::test_suite("long")) {
  const TempDir dir;
  std::string lines, table = "text\n";
  for (int i = 0; i < 90'000; ++i) {
    lines += format("{}{{\"text\": \"row {} of many\"}}\n", i % 500 == 0 ? "\n" : "", i);
    table += format("row {} of very many, and more\n", i);
  }
  dir.Write("a.txt", LinesOfText(2'500'000));
  dir.Write("b.txt", "");
  dir.Write("c.jsonl", lines);
  dir.Write("d.tsv", table);
  dir.Write("e.txt", LinesOfText(1'200'000));
  TextPaths paths;
  for (const char* name : {"a.txt", "b.txt", "c.jsonl", "d.tsv", "e.txt"})
    paths.files.push_back(dir.path(name));
  const std::string_view corpus = "row of many and more";
  const text::TokenizerPtr bpe = text::TrainBpe({&corpus, 1}, {.vocabulary_size = 262});
  struct Taken {
    text::Ids ids;
    std::vector<size_t> ends;
    int64_t bytes = 0;
  };
  const auto add = [](const EncodedPart& part, Taken* to) {
    for (const size_t end : part.ends) to->ends.push_back(to->ids.size() + end);
    to->ids.insert(to->ids.end(), part.ids.begin(), part.ids.end());
    to->bytes += part.bytes;
  };
  Taken whole;
  std::vector<std::pair<TextPlace, Taken>> places;  // with what was taken before
  EncodeTexts(*bpe, paths, [&](const EncodedPart& part) {
    add(part, &whole);
    places.emplace_back(part.next, whole);
  });
  CHECK(places.size() > 8);
  for (auto& [place, taken] : places) {
    CAPTURE(place.file);
    CAPTURE(place.byte);
    CAPTURE(place.row);
    EncodeTexts(
        *bpe, paths, [&](const EncodedPart& part) { add(part, &taken); }, place);
    CHECK(taken.ids == whole.ids);
    CHECK(taken.ends == whole.ends);
    CHECK(taken.bytes == whole.bytes);
  }
  // Errors in JSON lines tell the line of the file.
  const auto in_lines =
      std::ranges::find_if(places, [](const auto& place) { return place.first.line > 1; });
  REQUIRE(in_lines != places.end());
  const TextPlace second = in_lines->first;
  dir.Write("c.jsonl", lines + "{\"text\": 7}\n");
  CHECK(Says(MessageOf([&] {
               EncodeTexts(
                   *bpe, paths, [](EncodedPart&&) {}, second);
             }),
             "c.jsonl:90181: 'text' is not a text"));
  dir.Write("c.jsonl", "");
  CHECK(Says(MessageOf([&] {
               EncodeTexts(
                   *bpe, paths, [](EncodedPart&&) {}, second);
             }),
             "c.jsonl: the text ends before the place that was reached"));
}

}  // namespace mxtrain::test
