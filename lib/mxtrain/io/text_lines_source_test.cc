// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/letters.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::io {
namespace {

using test::TempDir;

std::unique_ptr<Source> OpenLines(const std::string& path, Kwargs kwargs = {}) {
  kwargs.emplace_back("path", path);
  return MakeSource("text_lines", kwargs);
}
std::string LinesFile(const TempDir& dir, const std::string& name, const std::string& text) {
  dir.Write(name, text);
  return dir.path(name);
}
std::vector<float> LabelAt(const Source& source, int64_t i) {
  Sample sample;
  const std::span<const float> label = source.LabelOf(i, 0, &sample);
  return {label.begin(), label.end()};
}

TEST_CASE("letters are code points") {
  CHECK(LettersOf("aé €") == std::vector<std::string>{"a", "é", " ", "€"});
  CHECK(LettersOf("").empty());
}

TEST_CASE("text_lines reads lists, tables and JSON lines alike") {
  const TempDir dir;
  const std::string files[] = {
      LinesFile(dir, "a.txt", "# comment\nx/1.png ab a\ny.png  b,é \n\n"),
      LinesFile(dir, "a.tsv", "image\ttext\nx/1.png\tab a\ny.png\tb,é\nz.png\t\n"),
      LinesFile(dir, "a.csv", "text,image\nab a,x/1.png\n\"b,é\",y.png\n,z.png\n"),
      LinesFile(dir, "a.jsonl", R"({"image": "x/1.png", "text": "ab a"}
{"image": "y.png", "text": "b,é"}
{"image": "z.png", "text": ""}
)")};
  for (const std::string& file : files) {
    INFO(file);
    const bool list = file.ends_with(".txt");
    const auto source = OpenLines(file);
    REQUIRE(source->size() == (list ? 2 : 3));
    CHECK(source->FileOf(0) == dir.path("x/1.png"));
    CHECK(source->class_names() == std::vector<std::string>{" ", ",", "a", "b", "é"});
    CHECK(source->label_fields()[0].shape == TShape{6});  // half as many again
    CHECK(source->TextOf(0) == "ab a");
    CHECK(LabelAt(*source, 0) == std::vector<float>{3, 4, 1, 3, 0, 0});
    CHECK(LabelAt(*source, 1) == std::vector<float>{4, 2, 5, 0, 0, 0});
    CHECK_FALSE(source->ClassOf(0));
    CHECK(source->found() == Kwargs{{"label_length", "6"}});
    if (list) continue;  // an empty text is missing there
    CHECK(LabelAt(*source, 2) == std::vector<float>{0, 0, 0, 0, 0, 0});
    REQUIRE(source->warnings().size() == 1);
    CHECK(source->warnings()[0].find("1 text is empty (first: ") == 0);
  }
}

TEST_CASE("text_lines: other data has the letters and the length of the training data") {
  const TempDir dir;
  const std::string file = LinesFile(dir, "b.txt", "1.png abcab\n2.png axb\n3.png b\n");
  const Kwargs carried = {{"classes", "(b, a)"}, {"label_length", "3"}};
  const auto source = OpenLines(file, carried);
  CHECK(source->class_names() == std::vector<std::string>{"b", "a"});
  CHECK(LabelAt(*source, 0) == std::vector<float>{2, 1, 2});  // without c, and cut
  CHECK(LabelAt(*source, 1) == std::vector<float>{2, 1, 0});
  CHECK(source->TextOf(0) == "abcab");
  CHECK(source->found().empty());
  REQUIRE(source->warnings().size() == 2);
  CHECK(source->warnings()[0].find("2 texts with a letter that the training data does not have "
                                   "('c' of ") != std::string::npos);
  CHECK(source->warnings()[1].find("1 text of more than 3 letters") != std::string::npos);
}

TEST_CASE("text_lines: an alphabet and a length that are given") {
  const TempDir dir;
  const std::string file = LinesFile(dir, "c.txt", "1.png ba\n2.png a\n");
  const auto source = OpenLines(file, {{"alphabet", "ba "}, {"most_letters", "5"}});
  CHECK(source->class_names() == std::vector<std::string>{"b", "a", " "});
  CHECK(LabelAt(*source, 0) == std::vector<float>{1, 2, 0, 0, 0});
  CHECK_THROWS_WITH_AS(OpenLines(file, {{"alphabet", "bcd"}}),
                       doctest::Contains("c.txt:1: the letter 'a' of 'ba' is not in the alphabet "
                                         "(bcd)"),
                       Error);
  CHECK_THROWS_WITH_AS(OpenLines(file, {{"alphabet", "bab"}}),
                       doctest::Contains("it has the letter 'b' twice"), Error);
  CHECK_THROWS_WITH_AS(OpenLines(file, {{"most_letters", "1"}}),
                       doctest::Contains("c.txt:1: 'ba' has 2 letters, more than most_letters = 1"),
                       Error);
}

TEST_CASE("text_lines: files that do not fit") {
  const TempDir dir;
  CHECK_THROWS_WITH_AS(OpenLines(LinesFile(dir, "d.txt", "1.png a\n2.png\n")),
                       doctest::Contains("d.txt:2: expected PATH TEXT, got '2.png'"), Error);
  CHECK_THROWS_WITH_AS(OpenLines(LinesFile(dir, "e.txt", "\n")),
                       doctest::Contains("names no images"), Error);
  CHECK_THROWS_WITH_AS(OpenLines(LinesFile(dir, "f.tsv", "image\ttext\n1.png\t\n")),
                       doctest::Contains("all texts are empty"), Error);
  CHECK_THROWS_WITH_AS(OpenLines(LinesFile(dir, "g.tsv", "image\tlabel\n1.png\ta\n")),
                       doctest::Contains("'text'"), Error);
  CHECK_THROWS_WITH_AS(OpenLines(LinesFile(dir, "h.txt", "1.png a\xff\n")),
                       doctest::Contains("h.txt:1: the text is not UTF-8"), Error);
  CHECK_THROWS_AS(OpenLines(dir.path("absent.txt")), Error);
}

TEST_CASE("text_lines without texts") {
  const TempDir dir;
  const auto source = OpenLines(LinesFile(dir, "i.txt", "1.png\n2.png\n"), {{"labels", "False"}});
  CHECK(source->size() == 2);
  CHECK(source->label_fields().empty());
  CHECK(source->TextOf(0).empty());
}

}  // namespace
}  // namespace mxtrain::io
