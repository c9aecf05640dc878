// SPDX-License-Identifier: Apache-2.0
// Windows of a text's tokens, against the text cut by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/io/source_factory.h"
#include "mxtrain/text/token_file.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::io;

const std::string kPlay = "To be, or not to be: that is the question.\n";

std::string Written(const TempDir& dir, const std::string& name, const std::string& bytes) {
  dir.Write(name, bytes);
  return dir.path() + "/" + name;
}

std::unique_ptr<Source> OpenText(const std::string& path, Kwargs kwargs) {
  kwargs.emplace_back("path", path);
  return MakeSource("text", kwargs);
}

// The text of a list of tokens.
std::string TextOf(const Source& source, std::span<const float> ids) {
  const text::TokenizerPtr tokenizer = text::TokenizerFromText(source.found()[0].second, "found");
  text::Ids tokens;
  for (const float id : ids) tokens.push_back(static_cast<text::TokenId>(id));
  return tokenizer->Decode(tokens);
}

std::pair<std::string, std::string> ExampleOf(const Source& source, int64_t index) {
  Sample sample;
  source.Read(index, &sample);
  return {TextOf(source, sample.data[0].values), TextOf(source, sample.labels[0].values)};
}

}  // namespace

TEST_CASE("an example is a window of the text, its label the same one token on") {
  const TempDir dir;
  const std::string path = Written(dir, "play.txt", kPlay);
  for (const int64_t length : {1, 5, 11}) {
    for (const int64_t stride : {0, 1, 3, 12}) {
      const auto source =
          OpenText(path, {{"length", std::to_string(length)}, {"stride", std::to_string(stride)}});
      const int64_t step = stride > 0 ? stride : length;
      int64_t count = 0;
      for (int64_t begin = 0; begin + length + 1 <= std::ssize(kPlay); begin += step, ++count) {
        const auto [data, label] = ExampleOf(*source, count);
        CHECK(data == kPlay.substr(static_cast<size_t>(begin), static_cast<size_t>(length)));
        CHECK(label == kPlay.substr(static_cast<size_t>(begin + 1), static_cast<size_t>(length)));
      }
      CHECK(source->size() == count);
    }
  }
  const auto source = OpenText(path, {{"length", "8"}});
  CHECK(source->Name(2) == path + ", token 16");
  CHECK(source->data_fields()[0].shape == TShape{8});
  CHECK(source->num_classes() == 18);  // characters, among them a blank and the end of the line
}

TEST_CASE("parts of a text are apart and together all of it") {
  const TempDir dir;
  const std::string path = Written(dir, "play.txt", kPlay);
  const auto first = OpenText(path, {{"length", "1"}, {"part", "0, 0.6"}}),
             last = OpenText(path, {{"length", "1"}, {"part", "0.6, 1"}});
  std::string all;
  for (int64_t i = 0; i < first->size(); ++i) all += ExampleOf(*first, i).first;
  all += ExampleOf(*first, first->size() - 1).second;
  for (int64_t i = 0; i < last->size(); ++i) all += ExampleOf(*last, i).first;
  all += ExampleOf(*last, last->size() - 1).second;
  CHECK(all == kPlay);
}

TEST_CASE(
    "streams are equal parts of a text, and each example goes on where that of its row ended") {
  const TempDir dir;
  const std::string path = Written(dir, "play.txt", kPlay);
  const std::string taken = kPlay.substr(4, 34);  // of the part below; two remain of 4 streams of 8
  for (const int64_t length : {1, 3, 7}) {
    const auto source = OpenText(
        path, {{"length", std::to_string(length)}, {"streams", "4"}, {"part", "0.1, 0.9"}});
    const int64_t examples = 7 / length;  // of a stream, whose last token is only a label
    REQUIRE(source->size() == 4 * examples);
    CHECK(source->streams() == 4);
    for (int64_t i = 0; i < source->size(); ++i) {
      const auto begin = static_cast<size_t>(i % 4 * 8 + i / 4 * length);
      const auto [data, label] = ExampleOf(*source, i);
      CHECK(data == taken.substr(begin, static_cast<size_t>(length)));
      CHECK(label == taken.substr(begin + 1, static_cast<size_t>(length)));
      CHECK(source->Name(i) == format("{}, token {}", path, 4 + begin));
    }
  }
  CHECK(OpenText(path, {{"length", "3"}})->streams() == 0);
  CHECK(Says(MessageOf([&] {
               OpenText(path, {{"length", "8"}, {"streams", "5"}});
             }),
             "too few for an example of 8 and the next one in each of 5 streams"));
  CHECK(Says(MessageOf([&] {
               OpenText(path, {{"length", "3"}, {"streams", "2"}, {"stride", "1"}});
             }),
             "stride = '1'"));
}

TEST_CASE("the text files of a folder follow each other by their paths") {
  const TempDir dir;
  dir.Write("b.txt", "second\n");
  dir.Write("a.txt", "first\n");
  dir.Write("deep/c.txt", "third\n");
  dir.Write("d.md", "none\n");
  const auto characters = OpenText(dir.path(), {{"length", "18"}});
  CHECK(ExampleOf(*characters, 0) ==
        std::pair<std::string, std::string>("first\nsecond\nthird", "irst\nsecond\nthird\n"));
}

TEST_CASE("tokens of a file are those of the text, and bring their tokenizer") {
  const TempDir dir;
  const std::string path = Written(dir, "play.txt", kPlay), file = dir.path() + "/play.tokens";
  const text::TokenizerPtr tokenizer = text::MakeByteTokenizer();
  text::TokenFileWriter writer(file, *tokenizer);
  writer.Add(tokenizer->Encode(kPlay));
  writer.EndDocument();
  writer.Commit();
  const auto source = OpenText(file, {{"length", "6"}});
  CHECK(ExampleOf(*source, 1) == std::pair<std::string, std::string>(" or no", "or not"));
  CHECK(source->num_classes() == 256);
  CHECK(RecognizeSource(file, "").kind->name == "text");
  // Read with another tokenizer than the model's.
  const auto other = OpenText(path, {{"length", "6"}});
  CHECK(Says(MessageOf([&] {
               OpenText(file, {{"length", "6"}, {"tokenizer_text", other->found()[0].second}});
             }),
             "are of another tokenizer than the model's"));
}

TEST_CASE("other data is read with the tokenizer that was found") {
  const TempDir dir;
  const std::string path = Written(dir, "play.txt", kPlay),
                    more = Written(dir, "more.txt", "that be the");
  const auto source = OpenText(path, {{"length", "4"}});
  CHECK(source->found()[0].first == "tokenizer_text");
  const auto same = OpenText(more, {{"length", "4"}, source->found()[0]});
  CHECK(same->class_names() == source->class_names());
  CHECK(ExampleOf(*same, 0).first == "that");
  const std::string odd = Written(dir, "odd.txt", "that be zinc");
  CHECK(Says(MessageOf([&] { OpenText(odd, {{"length", "4"}, source->found()[0]}); }), "odd.txt"));
}

TEST_CASE("texts that are no data") {
  const TempDir dir;
  const std::string path = Written(dir, "play.txt", kPlay);
  CHECK(Says(MessageOf([&] {
               OpenText(path, {{"length", "43"}});
             }),
             "too few for an example of 43"));
  CHECK(OpenText(path, {{"length", "42"}})->size() == 1);
  CHECK(Says(MessageOf([&] { OpenText(path, {}); }), "an example needs at least one token"));
  CHECK(Says(MessageOf([&] {
               OpenText(path, {{"length", "4"}, {"part", "0.5, 0.5"}});
             }),
             "expected from where to where"));
  CHECK(Says(MessageOf([&] {
               OpenText(path, {{"length", "4"}, {"tokenizer_file", "nowhere"}});
             }),
             "there is no such file or folder; expected characters, words, bytes"));
  CHECK(Says(MessageOf([&] {
               OpenText(dir.path() + "/none.txt", {{"length", "4"}});
             }),
             "none.txt"));
  const TempDir empty;
  CHECK(Says(MessageOf([&] { OpenText(empty.path(), {{"length", "4"}}); }), "has no .txt file"));
}

TEST_CASE("lines are packed whole into rows") {
  const TempDir dir;
  const std::string path = Written(dir, "names.txt", "emma\nava\n\nmia\nlongestname\nzoe\n");
  const auto source = OpenText(path, {{"length", "10"}, {"pack", "lines"}});
  REQUIRE(source->label_fields().size() == 2);
  CHECK(source->label_fields()[1].name == "token_position");
  std::vector<std::string> documents;
  for (int64_t row = 0; row < source->size(); ++row) {
    Sample sample;
    source->Read(row, &sample);
    const auto data = sample.data[0].values, label = sample.labels[0].values,
               position = sample.labels[1].values;
    REQUIRE(position.size() == 10);
    for (size_t i = 0; i < data.size(); ++i) {
      if (position[i] == 0) documents.push_back(TextOf(*source, data.subspan(i, 1)) + ">");
      if (position[i] >= 0) {
        documents.back() += TextOf(*source, label.subspan(i, 1));
        if (position[i] > 0) CHECK(data[i] == label[i - 1]);
      } else {
        CHECK(label[i] == -1);
      }
    }
  }
  std::ranges::sort(documents);
  // The first line has nothing before it; the long one is cut.
  CHECK(documents == std::vector<std::string>{"\n>ava\n", "\n>longestnam", "\n>mia\n", "\n>zoe\n",
                                              "e>mma\n", "m>e\n"});
  CHECK(source->size() == 3);
}

TEST_CASE("texts are packed whole into rows") {
  const TempDir dir;
  Written(dir, "a.txt", "abc");
  Written(dir, "b.txt", "defgh");
  const auto source = OpenText(dir.path(), {{"length", "8"}, {"pack", "texts"}});
  REQUIRE(source->size() == 1);
  Sample sample;
  source->Read(0, &sample);
  CHECK(TextOf(*source, sample.data[0].values.first(6)) == "defgab");
  CHECK(TextOf(*source, sample.labels[0].values.first(6)) == "efghbc");
  const std::vector<float> position(sample.labels[1].values.begin(), sample.labels[1].values.end());
  CHECK(position == std::vector<float>{0, 1, 2, 3, 0, 1, -1, -1});
  CHECK(Says(MessageOf([&] {
               OpenText(dir.path(), {{"length", "8"}, {"pack", "texts"}, {"stride", "2"}});
             }),
             "documents are no windows of a stream; remove stride"));
}

TEST_CASE("rows of JSON lines are documents") {
  const TempDir dir;
  const std::string path = Written(dir, "a.jsonl",
                                   "{\"head\": \"a\", \"body\": \"bc\"}\n"
                                   "{\"head\": \"\", \"body\": \"d\"}\n");
  const auto source =
      OpenText(path, {{"text_columns", "(head,body)"}, {"length", "4"}, {"tokenizer", "bytes"}});
  CHECK(ExampleOf(*source, 0) == std::pair<std::string, std::string>{"a bc", " bcd"});
}

}  // namespace mxtrain::test
