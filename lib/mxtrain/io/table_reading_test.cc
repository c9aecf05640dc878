// SPDX-License-Identifier: Apache-2.0
// Tables as other programs write them: header or not, separators, encodings, digits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/io/column_statistics.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

using TableRows = std::vector<std::vector<float>>;
using Strings = std::vector<std::string>;

std::unique_ptr<Source> OpenTable(const TempDir& dir, const std::string& text, Kwargs more) {
  dir.Write("t.csv", text);
  more.emplace_back("path", dir.path("t.csv"));
  return MakeSource("csv", more);
}

// "" for a table that is read.
std::string WhyNoTable(const TempDir& dir, const std::string& text, const Kwargs& more) {
  return MessageOf([&] { OpenTable(dir, text, more); });
}

// Of each row: the data, then the labels.
TableRows RowsOf(const Source& source) {
  TableRows rows;
  Sample sample;
  for (int64_t i = 0; i < source.size(); ++i) {
    source.Read(i, &sample);
    std::vector<float>& row = rows.emplace_back();
    for (const auto* fields : {&sample.data, &sample.labels}) {
      for (const FieldValue& value : *fields)
        row.insert(row.end(), value.values.begin(), value.values.end());
    }
  }
  return rows;
}

const Kwargs kByNumber = {{"data_fields", "(x=0, x=1)"}, {"label_fields", "y=2"}};
const Kwargs kByName = {{"data_fields", "(x=a, x=b)"}, {"label_fields", "y=y"}};

// Every second byte zero.
std::string Utf16(const std::string& text, bool little, bool mark) {
  std::string bytes = mark ? (little ? "\xff\xfe" : "\xfe\xff") : "";
  for (const char c : text) bytes += little ? std::string{c, '\0'} : std::string{'\0', c};
  return bytes;
}

}  // namespace

TEST_CASE("csv: the first line is a header or an example by its contents, and which is said") {
  const TempDir dir;
  struct Case {
    const char* text;
    Kwargs columns;
    bool header, doubtful;
    int64_t rows;
  };
  const Kwargs last_two = {{"data_fields", "x=1"}, {"label_fields", "y=2"}};
  const Kwargs image = {{"data_fields", "x=0"}, {"label_fields", "y=1"}, {"picture_fields", "x"}};
  const Case cases[] = {
      {"a,b,y\n1,2,3\n4,5,6\n", kByNumber, true, false, 2},
      {"1,2,3\n4,5,6\n", kByNumber, false, false, 2},
      {"M0,2,3\nM1,5,6\n", last_two, false, false, 2},  // words above words say nothing
      {"id,b,y\nM0,2,3\nM1,5,6\n", last_two, true, false, 2},
      {"1,2,no\n4,5,yes\n", kByNumber, false, false, 2},
      {"a,b,y\n1,2,no\n4,5,yes\n", kByNumber, true, false, 2},
      {"x.mean,y.mean,y\n1,2,3\n", kByNumber, true, false, 1},
      {"a,b,y\n,2,3\n4,5,6\n", {{"data_fields", "x=1"}, {"label_fields", "y=2"}}, true, false, 2},
      {"0,1,2\n0.5,2.5,no\n0.6,3.5,yes\n", kByNumber, true, true, 2},
      {"1,2,3\n0.5,2.5,7\n0.6,3.5,8\n", kByNumber, false, false, 3},
      {"0,1,2\n5,3,1\n4,2,0\n", kByNumber, true, true, 2},
      {"0,1,2\n1,2,3\n2,3,4\n", kByNumber, false, false, 3},
      {",0,1\n0,0.5,no\n1,0.6,yes\n",
       {{"data_fields", "x=0"}, {"label_fields", "y=1"}},
       true,
       true,
       2},
      {"0,1\n1,3\n2,5\n", {{"data_fields", "x=0"}, {"label_fields", "y=1"}}, false, false, 3},
      {"size,2019,2020\nM0,1,2\n", last_two, false, false, 2},
      {"?,2,3\n4,5,6\n", last_two, false, true, 2},
      {"a.png,cat\nb.png,dog\n", image, false, false, 2},
      {"file,label\na.png,cat\nb.png,dog\n", image, true, false, 2},
      {"file,weight\na.png,1.5\nb.png,2.5\n", image, true, false, 2},
      {"a.png,3\n", image, false, false, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto source = OpenTable(dir, c.text, c.columns);
    CHECK(source->size() == c.rows);
    const std::string which = format("{}: line 1 is taken as {}", dir.path("t.csv"),
                                     c.header ? "the header: " : "an example, not as the header");
    const Strings& told = c.doubtful ? source->warnings() : source->notes();
    REQUIRE(told.size() == 1);
    CheckHas(told[0], which);
    CHECK((c.doubtful ? source->notes() : source->warnings()).empty());
  }
  // A name that is asked for is in the header, whatever that looks like.
  CHECK(
      OpenTable(dir, "a,2,3\n1,2,3\n", {{"data_fields", "x=a"}, {"label_fields", "y=2"}})->size() ==
      1);
  CHECK(OpenTable(dir, "7,y\n1,2\n3,4\n", {{"label_columns", "y"}})->size() == 2);
  // The same line is the header for labels alone, which count the classes.
  const auto labels = OpenTable(dir, "M0,2,no\nM1,5,yes\n", {{"label_fields", "y=2"}});
  CHECK(labels->size() == 2);
  CHECK(labels->class_names() == Strings{"no", "yes"});
  CheckHas(WhyNoTable(dir, "?,2,3\n4,5,6\n", kByNumber),
           "t.csv:1: column 0 (counted from 0): '?' is not a number; if this line holds the names");
  CheckHas(WhyNoTable(dir, "a,b,y\n", kByNumber), "holds no line of data below line 1, the header");
}

TEST_CASE("csv: blanks in quotes belong to no class, number or name") {
  const TempDir dir;
  const auto source =
      OpenTable(dir, "a,b,\" y\"\n1,2,no\n\" 3\",4,\" yes\"\n5,6,\"yes \"\n", kByName);
  CHECK(source->class_names() == Strings{"no", "yes"});
  CHECK(RowsOf(*source) == TableRows{{1, 2, 0}, {3, 4, 1}, {5, 6, 1}});
  Kwargs again = kByName;
  again.push_back(source->found()[0]);
  CHECK(RowsOf(*OpenTable(dir, "a,b,y\n1,2,\" yes\"\n", again)) == TableRows{{1, 2, 1}});
  Kwargs drops = kByName;
  drops.emplace_back("missing", "drop");
  CHECK(OpenTable(dir, "a,b,y\n1,2,3\n\" \",4,5\n", drops)->size() == 1);
}

TEST_CASE("csv: UTF-16, old Macs' line ends, Excel's sep line") {
  const TempDir dir;
  const std::string text = "a,b,y\r\n1,2,3\r\n4,5.5,6\r\n";
  const TableRows rows = {{1, 2, 3}, {4, 5.5, 6}};
  for (const bool little : {true, false}) {
    for (const bool mark : {true, false})
      CHECK(RowsOf(*OpenTable(dir, Utf16(text, little, mark), kByName)) == rows);
  }
  CHECK(RowsOf(*OpenTable(dir, "a,b,y\r1,2,3\r4,5.5,6", kByName)) == rows);
  CHECK(RowsOf(*OpenTable(dir, "a,b,y\r1,2,3\r4,5.5,6\r\n", kByName)) == rows);
  CHECK(RowsOf(*OpenTable(dir, "sep=;\r\na;b;y\r\n1;2;3\r\n4;5.5;6\r\n", kByName)) == rows);
  CHECK(RowsOf(*OpenTable(dir, "\xef\xbb\xbf\"sep=\t\"\na\tb\ty\n1\t2\t3\n4\t5.5\t6\n\x1a",
                          kByName)) == rows);
  CheckHas(WhyNoTable(dir, "sep=;\na;b;y\n1;2;z\n1;2;3\n1;2;3\n", kByName), "t.csv:3: column 'y'");
  // Pairs of UTF-16, and a half of one.
  const std::string word("\x3d\xd8\x00\xde\x3d\xd8", 6);
  const auto smiles = OpenTable(dir, Utf16("a,b,y\n1,2,", true, true) + word, kByName);
  CHECK(smiles->class_names() == Strings{"\xf0\x9f\x98\x80\xef\xbf\xbd"});
}

TEST_CASE("csv: files that are no text are called by what they are") {
  const TempDir dir;
  const std::string zip = "PK\x03\x04", zeros("\x14\0\x06\0", 4);
  const std::pair<std::string, const char*> cases[] = {
      {zip + zeros + "[Content_Types].xml",
       "is a workbook of Excel (.xlsx), not a text file; save"},
      {zip + zeros + "xl/workbook.xml", "is a workbook of Excel (.xlsx)"},
      {zip + zeros + "mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
       "a spreadsheet (.ods)"},
      {zip + zeros + "rows.csv", "is a zip archive, not a text file; unpack it"},
      {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a workbook of Excel (.xls)"},
      {"PAR1\x15", "is a Parquet file"},
      {std::string("SQLite format 3\0", 16), "is a database of SQLite"},
      {std::string("\xff\xfe\0\0a\0\0\0", 8),
       "is text in UTF-32, not a text file; save it as UTF-8"},
      {"\n<!DOCTYPE html><html>", "is a web page"},
  };
  for (const auto& [bytes, what] : cases) CheckHas(WhyNoTable(dir, bytes, kByName), what);
}

TEST_CASE("csv: blanks separate the columns of a table that has no other separator") {
  const TempDir dir;
  const TableRows rows = {{1.5, 2, 3}, {-4, 55.5, 6}};
  CHECK(RowsOf(*OpenTable(dir, "   1.5   2.   3\n  -4   55.5   6  \r\n\n", kByNumber)) == rows);
  CHECK(RowsOf(*OpenTable(dir, "a b  y\n1.5 2 3\n-4 55.5 6\n", kByName)) == rows);
  CHECK(RowsOf(*OpenTable(dir, "1.5\t 2   3\n-4 55.5\t6\n", kByNumber)) == rows);
  // A tab before the last of columns that blanks separate.
  CHECK(RowsOf(*OpenTable(dir, "1.5  2 3\t\"an old car\"\n-4 55.5 6\t\"a new one\"\n",
                          kByNumber)) == rows);
  const auto words = OpenTable(dir, "1 2 \"no way\"\n3 4 yes\n", kByNumber);
  CHECK(words->class_names() == Strings{"no way", "yes"});
  CHECK(RowsOf(*OpenTable(
            dir, "1.5   2 3\n-4 55.5 6\n",
            {{"data_fields", "(x=0, x=1)"}, {"label_fields", "y=2"}, {"delimiter", "blanks"}})) ==
        rows);
  // Not where another separator has words with blanks between its cells.
  CHECK(RowsOf(*OpenTable(dir, "New York\t2\t3\nLos Angeles\t55.5\t6\n",
                          {{"data_fields", "x=1"}, {"label_fields", "y=2"}})) ==
        TableRows{{2, 3}, {55.5, 6}});
  CheckHas(WhyNoTable(dir, "1 2 3\n4 5\n6 7 8\n", kByNumber),
           "if blanks separate the columns, set delimiter");
  CheckHas(WhyNoTable(dir, "1 2 3\n4 5 x\n6 7 8\n8 9 1\n", kByNumber), "t.csv:2: column 2");
}

TEST_CASE("csv: a comma between digits is not the separator where another one is") {
  const TempDir dir;
  for (const char* text : {"1,5;2,5;3\n4;5,5;6\n", "1,5\t2,5\t3\n4\t5,5\t6\n",
                           "1,5 2,5 3\n4 5,5 6\n", "1,5;2,5;3,5\n1,5;2,5;3,5\n"}) {
    CheckHas(WhyNoTable(dir, text, kByNumber),
             "t.csv:1: column 0 (counted from 0): '1,5' is not a number; set decimal: ',' for a "
             "table with decimal commas");
    Kwargs commas = kByNumber;
    commas.emplace_back("decimal", ",");
    const TableRows rows = RowsOf(*OpenTable(dir, text, commas));
    CHECK(rows[0][0] == 1.5F);
    CHECK(rows.size() == 2);
  }
  CHECK(RowsOf(*OpenTable(dir, "1,5,3\n4,5,6\n", kByNumber)) == TableRows{{1, 5, 3}, {4, 5, 6}});
  CHECK(OpenTable(dir, "1,5,a;b\n4,5,c\n", kByNumber)->class_names() == Strings{"a;b", "c"});
}

TEST_CASE("csv: decimal commas are read where they are declared, and are words of nothing") {
  const TempDir dir;
  Kwargs commas = kByNumber;
  commas.emplace_back("decimal", ",");
  CHECK(RowsOf(*OpenTable(dir, "1,5;-1.234,5;3\n4;1.012.345,25;-0,5e1\n1.200;-1.012.345;+2\n",
                          commas)) ==
        TableRows{{1.5, -1234.5, 3}, {4, 1012345.25, -5}, {1200, -1012345, 2}});
  for (const char* cell :
       {"1.5", "0.234", "1234.567", "1.234e3", "1.23,4", ".123,4", "1,2,3", "1,2.3", "-.123,4"}) {
    CAPTURE(cell);
    CheckHas(WhyNoTable(dir, format("1;2;3\n4;{};5\n", cell), commas),
             format("t.csv:2: column 1 (counted from 0): '{}' is not a number", cell));
  }
  CheckHas(WhyNoTable(dir, "1;2;3\n4;1.5;5\n", commas),
           "it has a decimal point, and decimal: ',' reads commas");
  // A label of such cells alone would be one of words.
  const char* const labels = "1;2;3,5\n4;5;1,5\n";
  CheckHas(WhyNoTable(dir, labels, kByNumber),
           "t.csv:1: column 2 (counted from 0): '3,5' is not a number; set decimal: ','");
  CHECK(RowsOf(*OpenTable(dir, labels, commas)) == TableRows{{1, 2, 3.5}, {4, 5, 1.5}});
  Kwargs points = kByNumber;
  points.emplace_back("decimal", ".");
  CHECK(OpenTable(dir, labels, points)->class_names() == Strings{"1,5", "3,5"});
}

// Seconds since 1970 are 128 apart in float32.
TEST_CASE("csv: large numbers are standardized before they are rounded") {
  const TempDir dir;
  std::string text = "a,b,y\n";
  constexpr int kRows = 50;
  for (int i = 0; i < kRows; ++i)
    text += format("{},{},{}\n", 1700000000 + i, format("48.13500{:02}", i), 123456789012 + i);
  const auto raw = OpenTable(dir, text, kByName);
  const std::vector<ColumnStatistics> measured = MeasureColumns(*raw, {"x", "y"});
  const double middle = (kRows - 1) / 2.0, spread = std::sqrt((kRows * kRows - 1) / 12.0);
  CHECK(measured[0].mean[0] == doctest::Approx(1700000000 + middle).epsilon(1e-12));
  CHECK(measured[0].std[0] == doctest::Approx(spread).epsilon(1e-6));
  CHECK(measured[0].std[1] == doctest::Approx(spread * 1e-7).epsilon(1e-2));
  CHECK(measured[1].std[0] == doctest::Approx(spread).epsilon(1e-3));
  REQUIRE(raw->warnings().size() == 2);
  CheckHas(raw->warnings()[0], "numbers of column 'a', column 'b' lose digits in float32");
  CheckHas(raw->warnings()[1], "numbers of column 'y' lose digits");
  CheckHas(raw->warnings()[1], "normalize: auto standardizes them before they are rounded");

  Kwargs standardized = kByName;
  Strings means, stds;
  for (const ColumnStatistics& of : measured) {
    for (const double mean : of.mean)
      means.push_back(format("{}={}", of.field, params::Print(mean)));
    for (const double std : of.std) stds.push_back(format("{}={}", of.field, params::Print(std)));
  }
  standardized.emplace_back("field_means", params::Print(means));
  standardized.emplace_back("field_stds", params::Print(stds));
  const auto source = OpenTable(dir, text, standardized);
  CHECK(source->warnings().empty());
  const TableRows rows = RowsOf(*source);
  for (int i = 0; i < kRows; ++i) {
    const double expected = (i - middle) / spread;
    const std::vector<float>& row = rows[static_cast<size_t>(i)];
    CHECK(row[0] == doctest::Approx(expected).epsilon(1e-5));
    CHECK(row[1] == doctest::Approx(expected).epsilon(2e-2));
    CHECK(row[2] == doctest::Approx(expected).epsilon(1e-3));
  }
  // Also of a part, with rows dropped, and of a single row.
  standardized.emplace_back("missing", "drop");
  CHECK(RowsOf(*OpenTable(dir, "a,b,y\n,1,2\n1700000010,48.1350010,123456789022\n",
                          standardized))[0][0] ==
        doctest::Approx((10 - middle) / spread).epsilon(1e-5));
  Kwargs half = kByName;
  half.insert(half.end(), {{"holdout", "0.5"}, {"holdout_side", "held_out"}});
  CHECK(MeasureColumns(*OpenTable(dir, text, half), {"x"})[0].std[0] < spread * 1.5);
}

TEST_CASE("csv: words of columns of codes are numbered, and kept for other tables") {
  const TempDir dir;
  const Kwargs codes = {{"data_fields", "(x=size, x=town, x=level)"},
                        {"label_fields", "(y=y)"},
                        {"field_codes", "(x=0, x=4, x=3)"}};
  const auto source =
      OpenTable(dir, "size,town,level,y\n5,b,2,1\n6,a,0,2\n7,,1,3\n8,b,2,4\n", codes);
  CHECK(RowsOf(*source) == TableRows{{5, 2, 2, 1}, {6, 1, 0, 2}, {7, 0, 1, 3}, {8, 2, 2, 4}});
  REQUIRE(source->found().size() == 1);
  CHECK(source->found()[0] == Kwargs::value_type{"field_words", "(x=1=a, x=1=b)"});
  // Another table, with the words of this one.
  Kwargs again = codes;
  again.push_back(source->found()[0]);
  const auto other = OpenTable(dir, "size,town,level,y\n5,c,2,1\n6,b,0,2\n", again);
  CHECK(RowsOf(*other) == TableRows{{5, 0, 2, 1}, {6, 2, 0, 2}});
  REQUIRE(other->warnings().size() == 1);
  CheckHas(other->warnings()[0], "1 cell of column 'town' holds words");
  // What is no code, and too many words.
  for (const char* level : {"3", "-1", "0.5"})
    CheckHas(
        WhyNoTable(dir, format("size,town,level,y\n5,a,{},1\n", level), codes),
        format("t.csv:2: column 'level': {} is no code of the layer that reads it, which has 3 "
               "rows",
               level));
  CheckHas(WhyNoTable(dir, "size,town,level,y\n1,a,0,1\n1,b,0,1\n1,c,0,1\n1,d,0,1\n", codes),
           "holds 4 different words; with 0, for a word that is unknown or missing, the layer that "
           "reads them needs 5 rows, and has 4");
  CheckHas(WhyNoTable(dir, "size,town,level,y\n1,a,,1\n", codes), "column 'level'");
}

TEST_CASE("csv: a column with a deviation of 0 is not standardized") {
  const TempDir dir;
  Kwargs some = {{"data_fields", "(x=a, x=b)"},
                 {"label_fields", "(y=y)"},
                 {"field_means", "(x=10, x=3)"},
                 {"field_stds", "(x=2, x=0)"},
                 {"missing", "mean"}};
  const auto source = OpenTable(dir, "a,b,y\n12,5,1\n8,,2\n", some);
  CHECK(RowsOf(*source) == TableRows{{1, 5, 1}, {-1, 3, 2}});
  REQUIRE(source->data_fields()[0].units);
  std::vector<float> restored = {1, 5};
  source->data_fields()[0].units->Restore(&restored);
  CHECK(restored == std::vector<float>{12, 5});
}

// The bits of tables that float32 holds are those of earlier versions.
TEST_CASE("csv: numbers that float32 tells apart are measured and standardized by float32") {
  const TempDir dir;
  const auto raw = OpenTable(dir, "a,b,y\n0.123456789,1,1\n0.987654321,2,2\n", kByName);
  const double first = double{0.123456789f}, second = double{0.987654321f};
  CHECK(MeasureColumns(*raw, {"x"})[0].mean[0] == first + (second - first) / 2);
  CHECK(raw->warnings().empty());
  Kwargs given = kByName;
  given.insert(given.end(), {{"field_means", "(x=0.5, x=1)"}, {"field_stds", "(x=0.4, x=1)"}});
  CHECK(RowsOf(*OpenTable(dir, "a,b,y\n0.123456789,1,1\n", given))[0][0] ==
        static_cast<float>((first - 0.5) / 0.4));
}

TEST_CASE("csv: a row without the path of an image is dropped if missing cells are") {
  const TempDir dir;
  const Kwargs image = {
      {"data_fields", "(x=file, z=a)"}, {"label_fields", "y=y"}, {"picture_fields", "x"}};
  const std::string text = "file,a,y\np.png,1,0\n,2,1\nq.png,3,1\n";
  CheckHas(WhyNoTable(dir, text, image),
           "t.csv:3: column 'file': the path is empty; missing: drop skips such rows");
  for (const char* missing : {"drop", "mean"}) {
    CAPTURE(missing);
    Kwargs more = image;
    more.emplace_back("missing", missing);
    const auto source = OpenTable(dir, text, more);
    REQUIRE(source->size() == 2);
    CHECK(source->Name(1) == dir.path("t.csv") + ":4");
    CheckHas(source->warnings().at(0), "1 of 3 rows have an empty cell and are skipped");
  }
}

TEST_CASE("list: in UTF-16, and labels that are no classes") {
  const TempDir dir;
  const auto open = [&](const std::string& text) {
    dir.Write("list.txt", text);
    return MakeSource("list", {{"path", dir.path("list.txt")}});
  };
  CHECK(open(Utf16("a.png cat\nb.png dog\n", true, true))->class_names() == Strings{"cat", "dog"});
  CHECK(open("a.png cat\rb.png dog\r")->class_names() == Strings{"cat", "dog"});
  CHECK_THROWS_WITH_AS(open("a.png 1\nb.png -1\n"),
                       doctest::Contains("list.txt:2: the label -1 is no class: classes are "
                                         "numbered from 0 (write 0 and 1 for -1 and 1)"),
                       Error);
}

namespace {

Strings OfField(const std::string& field, const std::vector<double>& numbers) {
  Strings items;
  for (const double number : numbers) items.push_back(field + "=" + params::Print(number));
  return items;
}

// As a session gives them: measured on this table.
Kwargs WithTransforms(const Source& raw, const std::string& field,
                      const std::vector<ColumnTransform::Kind>& kinds) {
  const std::vector<ColumnStatistics> measured = MeasureColumns(raw, {field}, {{field, kinds}});
  Strings transforms;
  for (const ColumnTransform& transform : measured[0].transforms)
    transforms.push_back(field + "=" + transform.ToText());
  return {{"field_means", params::Print(OfField(field, measured[0].mean))},
          {"field_stds", params::Print(OfField(field, measured[0].std))},
          {"field_transforms", params::Print(transforms)}};
}

}  // namespace

// Against ranks counted one by one, and the distribution function of a normal variable.
TEST_CASE("csv: quantiles give a column the ranks of a normal distribution") {
  const TempDir dir;
  std::string text = "a,b,y\n";
  std::vector<double> numbers;
  constexpr int kRows = 301;
  for (int i = 0; i < kRows; ++i) {  // a third is 0, the others are far apart
    numbers.push_back(i % 3 == 0 ? 0 : std::exp(i * 0.05));
    text += format("{:.12g},{},1\n", numbers.back(), i % 5 == 1 ? "" : std::to_string(i));
  }
  Kwargs kwargs = kByName;
  kwargs.emplace_back("missing", "mean");
  const Kwargs by = WithTransforms(*OpenTable(dir, text, kwargs), "x",
                                   {ColumnTransform::kQuantile, ColumnTransform::kNone});
  kwargs.insert(kwargs.end(), by.begin(), by.end());
  const auto source = OpenTable(dir, text, kwargs);
  const Standardization& units = *source->data_fields()[0].units;
  const TableRows rows = RowsOf(*source);
  double sum = 0;
  for (size_t i = 0; i < kRows; ++i) {
    double below = 0, equal = 0;
    for (const double other : numbers) {
      below += other < numbers[i] ? 1 : 0;
      equal += other == numbers[i] ? 1 : 0;
    }
    const double score = units.mean[0] + units.std[0] * static_cast<double>(rows[i][0]);
    const double rank = std::erfc(-score / std::sqrt(2.0)) / 2;
    CHECK(rank == doctest::Approx((below + equal / 2) / kRows).epsilon(1e-5));
    sum += double{rows[i][0]};
    CHECK((rows[i][1] == 0) == (i % 5 == 1));  // the mean
  }
  CHECK(std::abs(sum / kRows) < 1e-6);
  // Between knots it is linear, beyond them constant.
  const ColumnTransform& quantile = units.transforms[0];
  const double middle = (quantile.from[3] + quantile.from[4]) / 2;
  CHECK(quantile.Apply(middle) == doctest::Approx((quantile.to[3] + quantile.to[4]) / 2));
  CHECK(quantile.Invert(quantile.Apply(middle)) == doctest::Approx(middle));
  CHECK(quantile.Apply(-7) == quantile.to.front());
  CHECK(quantile.Apply(1e9) == quantile.to.back());
  CHECK(ColumnTransform::FromText(quantile.ToText()).from == quantile.from);
  for (const char* damaged : {"square", "quantile", "quantile 1 2", "quantile 1 2 3",
                              "quantile 1 2 1 3", "quantile 1 2 3 2", "quantile 1 2 x 3"})
    CHECK_THROWS_AS(ColumnTransform::FromText(damaged), Error);
}

TEST_CASE("csv: many different numbers have knots at all ranks") {
  const TempDir dir;
  std::string text = "a,b,y\n";
  constexpr int kRows = 3000;
  for (int i = 0; i < kRows; ++i) text += format("{},{},1\n", i * 7 % kRows, i % 10 < 9 ? 0 : i);
  const auto raw = OpenTable(dir, text, kByName);
  const auto measured = MeasureColumns(
      *raw, {"x"}, {{"x", {ColumnTransform::kQuantile, ColumnTransform::kQuantile}}});
  const ColumnTransform& even = measured[0].transforms[0];
  CHECK(even.from.size() <= 257);
  for (int i = 5; i < kRows; i += 11) {
    const double rank = std::erfc(-even.Apply(i) / std::sqrt(2.0)) / 2;
    CHECK(std::abs(rank - (i + 0.5) / kRows) < 5e-3);  // linear between knots
  }
  // Of 0 in nine of ten rows and others, most knots are among the others.
  CHECK(measured[0].transforms[1].from.size() > 100);
}

TEST_CASE("csv: logarithms, of inputs and labels") {
  const TempDir dir;
  const std::string text = "a,b,y\n1,5,10\n10,6,100\n100,9,1000\n";
  const auto raw = OpenTable(dir, text, kByName);
  Kwargs kwargs = kByName;
  const Kwargs by = WithTransforms(*raw, "y", {ColumnTransform::kLog});
  kwargs.insert(kwargs.end(), by.begin(), by.end());
  const auto source = OpenTable(dir, text, kwargs);
  const TableRows rows = RowsOf(*source);
  CHECK(rows[0][2] == doctest::Approx(-std::sqrt(1.5)));
  CHECK(rows[1][2] == doctest::Approx(0));
  std::vector<float> restored = {rows[0][2], rows[1][2], rows[2][2]};
  source->label_fields()[0].units->Restore(&restored);
  for (size_t i = 0; i < 3; ++i)
    CHECK(restored[i] == doctest::Approx(std::pow(10.0, static_cast<double>(i + 1))));
  CheckHas(WhyNoTable(dir, "a,b,y\n1,5,10\n10,6,0\n", kwargs),
           "t.csv:3: column 'y': 0 has no logarithm");
  CheckHas(MessageOf([&] {
             MeasureColumns(*OpenTable(dir, "a,b,y\n1,5,10\n10,6,-2\n", kByName), {"y"},
                            {{"y", {ColumnTransform::kLog}}});
           }),
           "t.csv:3: -2 of 'y' has no logarithm");
}

TEST_CASE("csv: further words are missing cells, and a column tells where they are") {
  const TempDir dir;
  const std::string text = "a,b,y\n1,?,cat\n-999,4,dog\n3,5,?\n";
  Kwargs kwargs = {{"data_fields", "(x=a, x=b, x=missing(a), x=missing(b))"},
                   {"label_fields", "y=y"},
                   {"missing", "mean"},
                   {"missing_words", "(?, -999)"}};
  const auto raw = OpenTable(dir, text, kwargs);
  CHECK(raw->size() == 2);  // the third has no label
  CHECK(raw->class_names() == Strings{"cat", "dog"});
  kwargs.emplace_back("field_means", "(x=2, x=7, x=0, x=0)");
  CHECK(RowsOf(*OpenTable(dir, text, kwargs)) == TableRows{{1, 7, 0, 1, 0}, {2, 4, 1, 0, 1}});
  CheckHas(
      WhyNoTable(dir, text, {{"data_fields", "x=missing(a)"}, {"label_fields", "y=missing(b)"}}),
      "missing(b) is for inputs of numbers, not for 'y'");
  CheckHas(WhyNoTable(dir, text, {{"data_fields", "x=missing(c)"}, {"label_fields", "y=y"}}),
           "has no column 'c'");
}

// 30 patients of 1 to 5 rows, each with mostly one class; a third has none and stays alone.
TEST_CASE("csv: groups of rows are held out whole") {
  const TempDir dir;
  std::string text = "a,who,y\n";
  std::vector<std::string> who;
  for (int patient = 0; patient < 30; ++patient) {
    for (int row = 0; row <= patient % 5; ++row) {
      who.push_back(patient % 3 == 0 ? "" : format("p{}", patient));
      text += format("{},{},{}\n", who.size() - 1, who.back(), patient % 2 == 0 ? "sick" : "well");
    }
  }
  const auto rows_of = [&](Kwargs more) {
    more.insert(more.end(), {{"data_fields", "x=a"}, {"label_fields", "y=y"}, {"group", "who"}});
    std::vector<size_t> rows;
    for (const std::vector<float>& row : RowsOf(*OpenTable(dir, text, more)))
      rows.push_back(static_cast<size_t>(row[0]));
    return rows;
  };
  const auto groups_of = [&who](const std::vector<size_t>& rows) {
    std::set<std::string> groups;
    for (const size_t row : rows) {
      if (!who[row].empty()) groups.insert(who[row]);
    }
    return groups;
  };
  const Kwargs split = {{"holdout", "0.3"}, {"holdout_seed", "4"}};
  Kwargs held_side = split;
  held_side.emplace_back("holdout_side", "held_out");
  const std::vector<size_t> rest = rows_of(split), held = rows_of(held_side);
  CHECK(rest.size() + held.size() == who.size());
  CHECK(std::abs(static_cast<double>(held.size()) - 0.3 * static_cast<double>(who.size())) <= 3);
  const std::set<std::string> left = groups_of(rest), right = groups_of(held);
  CHECK(!right.empty());
  for (const std::string& group : right) CHECK(left.count(group) == 0);
  // Every row is in one of the folds, and no group in two.
  std::vector<int> seen(who.size());
  std::map<std::string, int> fold_of;
  for (int fold = 0; fold < 4; ++fold) {
    const std::vector<size_t> rows = rows_of({{"holdout_folds", "4"},
                                              {"holdout_fold", std::to_string(fold)},
                                              {"holdout_side", "held_out"}});
    CHECK(std::abs(static_cast<double>(rows.size()) - static_cast<double>(who.size()) / 4) <= 3);
    for (const size_t row : rows) {
      ++seen[row];
      if (!who[row].empty()) CHECK(fold_of.try_emplace(who[row], fold).first->second == fold);
    }
  }
  CHECK(std::ranges::all_of(seen, [](int count) { return count == 1; }));
  const std::string few = "a,who,y\n1,p,sick\n2,p,well\n3,p,sick\n";
  CheckHas(
      WhyNoTable(
          dir, few,
          {{"data_fields", "x=a"}, {"label_fields", "y=y"}, {"group", "who"}, {"holdout", "0.5"}}),
      "1 group of examples is too few for 2 parts");
  CheckHas(
      WhyNoTable(
          dir, few,
          {{"data_fields", "x=a"}, {"label_fields", "y=y"}, {"group", "when"}, {"holdout", "0.5"}}),
      "has no column 'when'");
}
