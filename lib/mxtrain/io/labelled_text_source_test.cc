// SPDX-License-Identifier: Apache-2.0
// Texts with labels in tables and JSON lines, against the rows that the test wrote.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "mxtrain/io/find_text_columns.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/text/text_encoder.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::io;

struct Row {
  std::string text, label;
};
const std::vector<Row> kRows = {{"what is it ?", "DESC"},
                                {"who is it", "HUM"},
                                {"who , what , where", "HUM"},
                                {"a \"quoted\" word", "DESC"},
                                {"", "HUM"}};

// kRows by hand: words by falling count, equals by their bytes, from 2.
const std::map<std::string, float> kIds = {{",", 2},      {"is", 3},         {"it", 4}, {"what", 5},
                                           {"who", 6},    {"\"quoted\"", 7}, {"?", 8},  {"a", 9},
                                           {"where", 10}, {"word", 11}};
constexpr float kPadding = 12;
constexpr size_t kLength = 4;

std::vector<float> IdsOf(const std::string& text) {
  std::vector<float> ids;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    ids.push_back(kIds.at(text.substr(at, end - at)));
    at = end + 1;
  }
  ids.resize(kLength, kPadding);
  return ids;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string PathOf(const TempDir& dir, const std::string& name, const std::string& bytes) {
  dir.Write(name, bytes);
  return dir.path() + "/" + name;
}

std::unique_ptr<Source> OpenTexts(const std::string& path, Kwargs kwargs = {}) {
  kwargs.emplace_back("path", path);
  const bool has_length =
      std::ranges::any_of(kwargs, [](const auto& item) { return item.first == "length"; });
  if (!has_length) kwargs.emplace_back("length", std::to_string(kLength));
  return MakeSource("labelled_text", kwargs);
}

std::string ErrorOf(const std::string& path, const Kwargs& kwargs = {}) {
  return MessageOf([&] { OpenTexts(path, kwargs); });
}

std::vector<float> DataOf(const Source& source, int64_t index) {
  Sample sample;
  source.Read(index, &sample);
  return {sample.data[0].values.begin(), sample.data[0].values.end()};
}
std::vector<float> LabelsOf(const Source& source, int64_t index) {
  Sample sample;
  source.Read(index, &sample);
  return {sample.labels[0].values.begin(), sample.labels[0].values.end()};
}

void CheckRows(const Source& source) {
  REQUIRE(source.size() == std::ssize(kRows));
  CHECK(source.class_names() == std::vector<std::string>{"DESC", "HUM"});
  CHECK(source.num_tokens() == static_cast<int64_t>(kPadding) + 1);
  for (int64_t i = 0; i < source.size(); ++i) {
    const Row& row = kRows[static_cast<size_t>(i)];
    CHECK(DataOf(source, i) == IdsOf(row.text));
    CHECK(LabelsOf(source, i) == std::vector<float>{row.label == "HUM" ? 1.0F : 0.0F});
    CHECK(source.ClassOf(i) == (row.label == "HUM" ? 1 : 0));
    CHECK(source.TextOf(i) == row.text);
  }
}

TEST_CASE("tables and JSON lines of the same texts are the same examples") {
  const TempDir dir;
  std::string tsv = "label\ttext\n", csv = "id,text,label\n", json, crlf = "label\ttext\r\n";
  for (const Row& row : kRows) {
    tsv += row.label + '\t' + (row.text.starts_with("a \"") ? Quoted(row.text) : row.text) + '\n';
    crlf += row.label + '\t' + Quoted(row.text) + "\r\n";
    csv += "7," + Quoted(row.text) + "," + row.label + "\n";
    std::string escaped;
    for (const char c : row.text) escaped += c == '"' ? "\\\"" : std::string(1, c);
    json += R"({"label": ")" + row.label + R"(", "other": [1], "text": ")" + escaped + "\"}\n";
  }
  CheckRows(*OpenTexts(PathOf(dir, "a.tsv", tsv)));
  CheckRows(*OpenTexts(PathOf(dir, "b.tsv", crlf)));
  CheckRows(*OpenTexts(PathOf(dir, "a.csv", csv)));
  CheckRows(*OpenTexts(PathOf(dir, "a.jsonl", json)));
  CheckRows(*OpenTexts(PathOf(dir, "no_ending", json)));
  // By number there is no header.
  CheckRows(*OpenTexts(PathOf(dir, "c.tsv", tsv.substr(tsv.find('\n') + 1)),
                       {{"text_columns", "1"}, {"label_column", "0"}}));
  const auto source = OpenTexts(dir.path() + "/a.tsv");
  CHECK(source->Name(1) == dir.path() + "/a.tsv:3");
  CHECK(source->IsCut(2));
  CHECK(!source->IsCut(0));
  CHECK(source->warnings() ==
        std::vector<std::string>{"a text is empty (first: " + dir.path() + "/a.tsv:6)"});
  CHECK(source->notes().back().find("1 is longer than 4 ids and cut (the longest has 5)") !=
        std::string::npos);
}

TEST_CASE("other data is read as the training data was") {
  const TempDir dir;
  const Kwargs options = {
      {"lowercase", "True"}, {"ngrams", "2"}, {"buckets", "50"}, {"length", "8"}};
  const auto train =
      OpenTexts(PathOf(dir, "a.tsv", "label\ttext\nx\tOne Two\ny\tthree two\n"), options);
  CHECK(train->num_tokens() == 2 + 3 + 50 + 1);
  Kwargs carried = train->found();
  carried.emplace_back("classes", "y, x");
  carried.emplace_back("length", "8");
  const auto other = OpenTexts(PathOf(dir, "b.tsv", "label\ttext\nx\tTWO four\n"), carried);
  CHECK(other->num_tokens() == train->num_tokens());
  CHECK(other->ClassOf(0) == 1);
  const float two = DataOf(*train, 1)[1];
  CHECK(DataOf(*other, 0)[0] == two);
  CHECK(DataOf(*other, 0)[1] == 0);  // <unk>
  const std::vector<text::TokenId> pair = {static_cast<text::TokenId>(two), 0};
  CHECK(DataOf(*other, 0)[2] == 5 + static_cast<float>(text::HashOfNgram(pair) % 50));
  CHECK(DataOf(*other, 0)[3] == 55);
  carried[1].second = "y, z";
  CHECK(MessageOf([&] {
          OpenTexts(dir.path() + "/b.tsv", carried);
        }).find("b.tsv:2: the label 'x' is not one of the 2 classes") != std::string::npos);
}

TEST_CASE("a text that is cut keeps the special tokens at its end") {
  const TempDir dir;
  const std::string tokenizer = PathOf(dir, "t.json", R"({"version": "1.0",
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
              "vocab": {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "a": 3, "b": 4, "##s": 5}}})");
  const auto source = OpenTexts(PathOf(dir, "a.tsv", "label\ttext\nx\ta bs a\ny\tB\n"),
                                {{"tokenizer_file", tokenizer}, {"special_tokens", "True"}});
  CHECK(DataOf(*source, 0) == std::vector<float>{0, 3, 4, 1});
  CHECK(DataOf(*source, 1) == std::vector<float>{0, 4, 1, 6});
  CHECK(source->IsCut(0));
  CHECK(!source->IsCut(1));
  CHECK(source->num_tokens() == 7);
  const auto other = OpenTexts(dir.path() + "/a.tsv", source->found());
  CHECK(DataOf(*other, 1) == DataOf(*source, 1));
  CHECK(ErrorOf(dir.path() + "/a.tsv", {{"special_tokens", "True"}})
            .find("special_tokens = 'True' is for tokenizer_file") != std::string::npos);
}

TEST_CASE("the vocabulary is the most frequent words, equals by their bytes") {
  const TempDir dir;
  const std::string path = PathOf(dir, "a.tsv", "label\ttext\nx\tb a c c\ny\td a b c\n");
  const auto source = OpenTexts(path, {{"vocabulary", "2"}});
  CHECK(DataOf(*source, 0) == std::vector<float>{0, 3, 2, 2});  // c 2, a 3
  CHECK(source->num_tokens() == 5);
  const auto often = OpenTexts(path, {{"least_count", "3"}});
  CHECK(DataOf(*often, 0) == std::vector<float>{0, 0, 2, 2});
  const auto bytes = OpenTexts(path, {{"tokenizer", "bytes"}});
  CHECK(DataOf(*bytes, 0) == std::vector<float>{'b', ' ', 'a', ' '});
  CHECK(bytes->num_tokens() == 257);
  const auto characters = OpenTexts(path, {{"tokenizer", "characters"}});
  CHECK(characters->num_tokens() == 2 + 5 + 1);  // <unk>, the end of a line, " abcd", padding
  CHECK(ErrorOf(path, {{"tokenizer", "bytes"}, {"vocabulary", "9"}}) ==
        "vocabulary = '9' is for tokenizer: words");
  CHECK(ErrorOf(path, {{"ngrams", "2"}}).find("ngrams = '2': n-grams need buckets") == 0);
  CHECK(ErrorOf(path, {{"length", "0"}}) == "length = '0': an example needs at least one token");
}

TEST_CASE("several columns are one text, and several labels a set") {
  const TempDir dir;
  const std::string csv = PathOf(dir, "a.csv", "title,body,label\n\"A, b\",c,x;y\n,\"d\nd\",\n"),
                    json = PathOf(
                        dir, "a.jsonl",
                        "{\"title\": \"A, b\", \"body\": \"c\", \"label\": [\"x\", "
                        "\"y\"]}\n\n{\"title\": \"\", \"body\": \"d\\nd\", \"label\": []}\n");
  const Kwargs options = {{"text_columns", "title, body"}, {"label_delim", ";"}};
  for (const std::string& path : {csv, json}) {
    const auto source = OpenTexts(path, options);
    CHECK(source->TextOf(0) == "A, b c");
    CHECK(source->TextOf(1) == "d\nd");
    CHECK(source->Name(1) == path + ":3");
    CHECK(source->label_fields()[0].shape == TShape{2});
    CHECK(LabelsOf(*source, 0) == std::vector<float>{1, 1});
    CHECK(LabelsOf(*source, 1) == std::vector<float>{0, 0});
    CHECK(!source->ClassOf(0));
    CHECK(DataOf(*source, 1)[0] == DataOf(*source, 1)[1]);
  }
  CHECK(
      ErrorOf(json, {{"text_columns", "title"}}).find("a.jsonl:1: 'label' is a list of classes") !=
      std::string::npos);
  CHECK(ErrorOf(csv, {{"text_columns", "title, body"}}).find("a.csv:3: the label is empty") !=
        std::string::npos);
}

TEST_CASE("without labels any file of texts is read") {
  const TempDir dir;
  const Kwargs options = {{"labels", "False"}};
  const auto lines = OpenTexts(PathOf(dir, "a.txt", "one\ttwo\n\n \"three\r\n"), options);
  REQUIRE(lines->size() == 3);
  CHECK(lines->TextOf(0) == "one\ttwo");
  CHECK(lines->TextOf(1).empty());
  CHECK(lines->TextOf(2) == "\"three");
  CHECK(lines->label_fields().empty());
  CHECK(OpenTexts(PathOf(dir, "a.tsv", "text\tnumber\na b\t1\n"), options)->TextOf(0) == "a b");
  CHECK(OpenTexts(PathOf(dir, "a.jsonl", "{\"text\": \"a b\"}\n"), options)->TextOf(0) == "a b");
  CHECK(OpenTexts(PathOf(dir, "table", "text,number\na b,1\n"), options)->TextOf(0) == "a b");
  CHECK(OpenTexts(PathOf(dir, "lines", "some words\nmore\n"), options)->size() == 2);
}

TEST_CASE("what is wrong in a file is named with its line") {
  const TempDir dir;
  const auto of = [&](const std::string& name, const std::string& bytes,
                      const Kwargs& kwargs = {}) {
    return ErrorOf(PathOf(dir, name, bytes), kwargs).substr(dir.path().size() + 1);
  };
  CHECK(of("a.tsv", "label\ttext\nx\tone\ty\n") ==
        "a.tsv:2: 3 columns, but the lines before have 2; a text with tab in it is written in "
        "quotes");
  CHECK(of("a.tsv", "label\ttext\nx\t\"never\nclosed\n") ==
        "a.tsv:2: a quote is opened and never closed");
  CHECK(of("a.tsv", "label\ttext\nx\tfine\n\tnone\n") ==
        "a.tsv:3: the label is empty; write a class, or remove the line");
  CHECK(of("a.tsv", "label\ttext\n") == "a.tsv holds no texts");
  CHECK(of("a.jsonl", "{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": \"a\"\n") ==
        "a.jsonl:2: it is not JSON at its byte 13; each line is an object");
  CHECK(of("a.jsonl", "[1]\n") ==
        "a.jsonl:1: it is not an object, but array; expected {\"text\": ..., \"label\": ...}");
  CHECK(of("a.jsonl", "{\"label\": \"x\", \"words\": \"a\"}\n") ==
        "a.jsonl:1: there is no key 'text' (text_columns); there are label, words");
  CHECK(of("a.jsonl", "{\"label\": \"x\", \"text\": 4}\n") == "a.jsonl:1: 'text' is not a text");
  CHECK(of("a.jsonl", "{\"label\": {}, \"text\": \"a\"}\n") ==
        "a.jsonl:1: 'label' is neither a word nor an integer");
  const std::string missing = ErrorOf(PathOf(dir, "b.tsv", "class\ttext\nx\tone\n"));
  CHECK(missing.find("label_column = 'label': " + dir.path() +
                     "/b.tsv has no column 'label'; it has 2 columns, named class, text") == 0);
  CHECK(ErrorOf(PathOf(dir, "x.csv", "PK\x03\x04 and so on")).find("zip archive") !=
        std::string::npos);
  CHECK_THROWS_WITH(OpenTexts(dir.path() + "/none.tsv"), doctest::Contains("none.tsv"));
}

TEST_CASE("hostile texts: invalid UTF-8, and a megabyte in a line") {
  const TempDir dir;
  std::string words;
  for (int i = 0; i < 180'000; ++i) words += "word" + std::to_string(i % 7) + " ";
  const auto source =
      OpenTexts(PathOf(dir, "a.tsv", "label\ttext\nx\tbad \xff\xfe bytes\ny\t" + words + "\n"),
                {{"lowercase", "True"}, {"ngrams", "2"}, {"buckets", "10"}, {"length", "6"}});
  CHECK(source->size() == 2);
  CHECK(source->IsCut(1));
  CHECK(DataOf(*source, 0)[1] < static_cast<float>(source->num_tokens() - 11));
  CHECK(ErrorOf(PathOf(dir, "b.tsv", "label\ttext\n\xff\ta b c\ny\td\n"))
            .find("the class name '\\xff' is not UTF-8") != std::string::npos);
}

TEST_CASE("files of texts are found by their columns") {
  const TempDir dir;
  std::string named = "id,headline,body,topic\n", plain, json, numbers = "x,y,label\n";
  for (int i = 0; i < 40; ++i) {
    named += format("{},some words here,\"and, more of them\",t{}\n", i, i % 3);
    plain += format("c{}\tthis is text number {}\n", i % 4, i);
    json += format("{{\"sentence\": \"this is text {}\", \"label\": {}}}\n", i, i % 2);
    numbers += format("{},{},{}\n", i, 2 * i, i % 2);
  }
  const auto found = FindTextColumns(PathOf(dir, "a.csv", named));
  REQUIRE(found);
  CHECK(found->texts == std::vector<std::string>{"headline", "body"});
  CHECK(found->label == "topic");
  const auto unnamed = FindTextColumns(PathOf(dir, "a.tsv", plain));
  REQUIRE(unnamed);
  CHECK(unnamed->texts == std::vector<std::string>{"1"});
  CHECK(unnamed->label == "0");
  const auto keys = FindTextColumns(PathOf(dir, "a.jsonl", json));
  REQUIRE(keys);
  CHECK(keys->texts == std::vector<std::string>{"sentence"});
  CHECK(keys->label == "label");
  CHECK(!FindTextColumns(PathOf(dir, "b.csv", numbers)));
  // However short, the texts that are named so beside a label.
  std::string short_json, short_table = "text\tlabel\n", short_other = "phrase\tlabel\n";
  for (int i = 0; i < 20; ++i) {
    short_json += format("{{\"text\": \"word {0}\", \"label\": \"{1}\", \"id\": {0}}}\n", i, i % 2);
    short_table += format("word {}\t{}\n", i, i % 2 ? "odd" : "even");
    short_other += format("word {}\t{}\n", i, i % 2 ? "odd" : "even");
  }
  for (const auto& [name, text] :
       {std::pair("short.jsonl", short_json), {"short.tsv", short_table}}) {
    const auto brief = FindTextColumns(PathOf(dir, name, text));
    REQUIRE(brief);
    CHECK(brief->texts == std::vector<std::string>{"text"});
    CHECK(brief->label == "label");
  }
  CHECK(!FindTextColumns(PathOf(dir, "other.tsv", short_other)));
  CHECK(!FindTextColumns(PathOf(dir, "b.png", named)));
  CHECK(!FindTextColumns(PathOf(dir, "c.csv", "label,text\n\"never closed")));
  CHECK_THROWS_WITH_AS(
      FindTextColumns(PathOf(dir, "few.tsv", "label\ttext\na\tone two three\n")),
      doctest::Contains("few.tsv: 2 lines are too few to tell what the columns hold"), Error);
  CHECK(!FindTextColumns(PathOf(dir, "few.txt", "one line\n")));
}

TEST_CASE("several classes of a text are told by what separates them") {
  const TempDir dir;
  const auto delim = [&](const char* name, const std::vector<std::string>& labels, bool json) {
    std::string text = json ? "" : "label\ttext\n";
    for (const std::string& label : labels) {
      text += json ? format("{{\"label\": {}, \"text\": \"these are some words\"}}\n", label)
                   : format("{}\tthese are some words\n", label);
    }
    const auto found = FindTextColumns(PathOf(dir, name, text));
    REQUIRE(found);
    CHECK(found->label == "label");
    return found->label_delim;
  };
  CHECK(delim("a.tsv", {"good;any", "bad;any", "", "bad;any", "bad"}, false) == ";");
  CHECK(delim("b.tsv", {"a|b", "a", "b", "a"}, false) == "|");
  CHECK(delim("c.tsv", {"a, b", "a", "b", "b, a", "a"}, false) == ",");
  CHECK(delim("d.tsv", {"Science, Maths", "Arts, Music", "Arts, Music", "Other"}, false).empty());
  CHECK(delim("e.tsv", {"a", "b", "a", "b"}, false).empty());
  CHECK(delim("f.jsonl", {"[\"a\", \"b;c\"]", "[]", "[\"a\"]", "[1]"}, true) == "|");
  CHECK(delim("g.jsonl", {"\"a;b\"", "\"a\"", "\"b\"", "\"a\""}, true).empty());
}

TEST_CASE("the texts of a folder that are named for training") {
  const TempDir dir;
  const std::string table = "label\ttext\na\tone two three\nb\tone two three\na\tthree two one\n";
  CHECK(TrainingTextsIn(dir.path()).empty());
  PathOf(dir, "validation.tsv", table);
  PathOf(dir, "trainers.csv", "x,y\n1,2\n3,4\n5,6\n");
  CHECK(TrainingTextsIn(dir.path()).empty());
  const std::string train = PathOf(dir, "Train.tsv", table);
  CHECK(TrainingTextsIn(dir.path()) == train);
  PathOf(dir, "train2.tsv", table);
  CHECK(TrainingTextsIn(dir.path()).empty());
}

}  // namespace
}  // namespace mxtrain::test
