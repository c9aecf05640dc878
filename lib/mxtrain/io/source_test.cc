// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/source.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <filesystem>

#include "mxtrain/base/file.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/io/column_statistics.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/image_folder_source.h"
#include "mxtrain/io/internal/csv_source.h"
#include "mxtrain/io/internal/mnist_source.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/allocation_count.h"
#include "tests/support/data_dir.h"
#include "tests/support/source_error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

std::string Number(int64_t value) {
  std::string bytes;
  for (int i = 3; i >= 0; --i) bytes += static_cast<char>(value >> 8 * i & 0xff);
  return bytes;
}

std::string Idx(const std::vector<int64_t>& dims, const std::string& elements) {
  std::string bytes = Number(0x800 + static_cast<int64_t>(dims.size()));
  for (const int64_t dim : dims) bytes += Number(dim);
  return bytes + elements;
}

std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(bytes.size() + bytes.size() / 100 + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string EncodedImage() {
  Image image;
  image.Resize(2, 2, 1);
  return EncodePng(image);
}

// The message of the Error that making the source throws.
std::vector<float> Values(std::span<const float> values) {
  return {values.begin(), values.end()};
}

const std::string kThreeImages("\x00\x01\x02\x03\x10\x11\x12\x13\xfc\xfd\xfe\xff", 12);

}  // namespace

TEST_CASE("mnist reads plain and packed files") {
  const TempDir dir;
  dir.Write("train-images-idx3-ubyte.gz", Gzip(Idx({3, 2, 2}, kThreeImages)));
  dir.Write("train-labels.idx1-ubyte", Idx({3}, std::string("\x05\x00\x09", 3)));
  const auto source = MakeSource("mnist", {{"path", dir.path()}});
  CHECK(source->size() == 3);
  CHECK(source->data_fields()[0].shape == TShape{1, 2, 2});
  CHECK(source->num_classes() == 10);
  Sample sample;
  source->Read(2, &sample);
  CHECK(std::vector<int>(sample.data[0].pixels.begin(), sample.data[0].pixels.end()) ==
        std::vector<int>{252, 253, 254, 255});
  CHECK(sample.labels[0].values[0] == 9.0f);
  CHECK(source->ClassOf(0) == 5);
}

TEST_CASE("mnist reads packed files whose contents did not compress") {
  const TempDir dir;
  std::string noise;
  for (size_t i = 0; i < 300'000; ++i) noise += static_cast<char>(PhiloxAt(1, 2, 3, i));
  dir.Write("train-images-idx3-ubyte.gz", Gzip(Idx({300, 1000, 1}, noise)));
  dir.Write("train-labels-idx1-ubyte.gz", Gzip(Idx({300}, noise.substr(0, 300))));
  const auto source = MakeSource("mnist", {{"path", dir.path()}});
  Sample sample;
  source->Read(299, &sample);
  CHECK(std::string(sample.data[0].pixels.begin(), sample.data[0].pixels.end()) ==
        noise.substr(299'000));
}

TEST_CASE("mnist says what is wrong with a file") {
  const TempDir dir;
  const Kwargs kwargs = {{"path", dir.path()}, {"split", "test"}};
  CheckHas(WhyNoSource("mnist", kwargs),
           "has neither t10k-images-idx3-ubyte nor t10k-images-idx3-ubyte.gz");
  const std::string labels = Idx({3}, "abc"), images = Idx({3, 2, 2}, kThreeImages);
  dir.Write("t10k-labels-idx1-ubyte", labels);
  const auto with_images = [&](const std::string& bytes) {
    dir.Write("t10k-images-idx3-ubyte", bytes);
    return WhyNoSource("mnist", kwargs);
  };
  CheckHas(with_images(""), "less than the header");
  CheckHas(with_images(images.substr(0, images.size() - 1)),
           "its header promises [3, 2, 2] bytes, 11 follow");
  CheckHas(with_images(images + "x"), "its header promises [3, 2, 2] bytes, more follow");
  CheckHas(with_images(labels + std::string(16, '\0')),
           "it begins with 0x00000801, not 0x00000803");
  CheckHas(with_images(Idx({4294967295, 4294967295, 4294967295}, "")), "the limit is 4294967296");
  CheckHas(with_images(Idx({2, 2, 2}, kThreeImages.substr(4))), "holds 2 images, but");
  const std::string packed = Gzip(images);
  CheckHas(with_images(packed.substr(0, packed.size() - 9)),
           "is damaged: its gzip data are truncated");
  CHECK(with_images(images) == "");
}

// A file of a few KiB once took 4 GiB before its header was looked at.
TEST_CASE("mnist decompresses no more than a file's header promises") {
  const TempDir dir;
  const std::string images = Idx({3, 2, 2}, kThreeImages),
                    zeros = Gzip(std::string(size_t{64} << 20, '\0'));
  dir.Write("train-labels-idx1-ubyte", Idx({3}, "abc"));
  for (const std::string& bytes :
       {Gzip(images) + zeros, Gzip(images + std::string(size_t{64} << 20, '\0')), zeros}) {
    dir.Write("train-images-idx3-ubyte.gz", bytes);
    PeakBytes peak;
    CheckHas(
        WhyNoSource("mnist", {{"path", dir.path()}}),
        bytes == zeros ? "is not an IDX file" : "its header promises [3, 2, 2] bytes, more follow");
    CHECK(peak.value() < 4 << 20);
  }
}

TEST_CASE("the real MNIST" * doctest::test_suite("mnist") * doctest::skip()) {
  const auto folder = test::DataDir("mnist");
  if (!folder) return;
  const auto source = MakeSource("mnist", {{"path", *folder}, {"split", "test"}});
  CHECK(source->size() == 10000);
  CHECK(source->num_classes() == 10);
  const std::vector<int> first = {7, 2, 1, 0, 4, 1, 4, 9, 5, 9};
  for (int i = 0; i < 10; ++i) CHECK(source->ClassOf(i) == first[static_cast<size_t>(i)]);
  CHECK(MakeSource("mnist", {{"path", *folder}})->size() == 60000);
}

TEST_CASE("csv: one file with columns") {
  const TempDir dir;
  dir.Write("a.csv", "x, y ,kind\n1,2.5,0\r\n\n-3e2, +4 ,1\n");
  const auto source = MakeSource("csv", {{"path", dir.path("a.csv")}, {"label_columns", "kind"}});
  REQUIRE(source->size() == 2);
  CHECK(source->data_fields()[0].shape == TShape{2});
  CHECK(source->label_fields()[0].shape.ndim() == 0);
  Sample sample;
  source->Read(1, &sample);
  CHECK(Values(sample.data[0].values) == std::vector<float>{-300, 4});
  CHECK(Values(sample.labels[0].values) == std::vector<float>{1});
  CHECK(source->Name(1) == dir.path("a.csv") + ":4");
  const auto by_number = MakeSource("csv", {{"path", dir.path("a.csv")}, {"label_columns", "2,0"}});
  by_number->Read(0, &sample);
  CHECK(Values(sample.data[0].values) == std::vector<float>{2.5});
  CHECK(Values(sample.labels[0].values) == std::vector<float>{0, 1});
}

TEST_CASE("csv: data and labels apart, with shapes") {
  const TempDir dir;
  dir.Write("d.csv", "1,2,3,4\n5,6,7,8");
  dir.Write("l.csv", "0\n1\n");
  const auto source = MakeSource("csv", {{"data_csv", dir.path("d.csv")},
                                         {"label_csv", dir.path("l.csv")},
                                         {"data_shape", "(1,2,2)"},
                                         {"label_shape", "(1,)"}});
  CHECK(source->data_fields()[0].shape == TShape{1, 2, 2});
  CHECK(source->label_fields()[0].shape == TShape{1});
  CHECK(MakeSource("csv", {{"data_csv", dir.path("d.csv")}})->label_fields().empty());
}

TEST_CASE("csv: named fields of several columns") {
  const TempDir dir;
  dir.Write("pairs.csv", "a,b,c,d,y,z\n1,2,3,4,5,6\n7,8,9,10,11,12\n");
  const auto source = MakeSource("csv", {{"path", dir.path("pairs.csv")},
                                         {"data_fields", "(right=d, left=a, left=b, right=c)"},
                                         {"label_fields", "(y=y, z=z)"},
                                         {"field_shapes", "(right=2x1, z=1)"}});
  REQUIRE(source->data_fields().size() == 2);
  CHECK(source->data_fields()[0].name == "right");
  CHECK(source->data_fields()[0].shape == TShape{2, 1});
  CHECK(source->data_fields()[1].shape == TShape{2});
  CHECK(source->label_fields()[0].shape.ndim() == 0);
  CHECK(source->label_fields()[1].shape == TShape{1});
  Sample sample;
  source->Read(1, &sample);
  CHECK(Values(sample.data[0].values) == std::vector<float>{10, 9});
  CHECK(Values(sample.data[1].values) == std::vector<float>{7, 8});
  CHECK(Values(sample.labels[0].values) == std::vector<float>{11});
  CHECK(Values(sample.labels[1].values) == std::vector<float>{12});
  const auto why = [&dir](Kwargs more) {
    more.emplace_back("path", dir.path("pairs.csv"));
    return WhyNoSource("csv", more);
  };
  CheckHas(why({{"data_fields", "left=a, left=x"}}), "has no column 'x'");
  CheckHas(why({{"data_fields", "left"}}), "csv: data_fields has 'left'; expected FIELD=VALUE");
  CheckHas(why({{"data_fields", "left=a"}, {"field_shapes", "left=2"}}), "csv: left = ");
  CheckHas(why({{"data_fields", "left=a"}, {"label_columns", "b"}}), "takes the place of");
}

TEST_CASE("csv: separators, quotes and unused columns") {
  const TempDir dir;
  const auto rows = [&](const std::string& text, Kwargs more = {}) {
    dir.Write("t.csv", text);
    more.insert(
        more.end(),
        {{"path", dir.path("t.csv")}, {"data_fields", "(x=a, x=b)"}, {"label_fields", "y=y"}});
    const auto source = MakeSource("csv", more);
    std::vector<std::vector<float>> all;
    Sample sample;
    for (int64_t i = 0; i < source->size(); ++i) {
      source->Read(i, &sample);
      all.push_back(Values(sample.data[0].values));
      all.back().push_back(sample.labels[0].values[0]);
    }
    return all;
  };
  const std::vector<std::vector<float>> expected = {{1, 2, 3}, {-4, 5.5, 6}};
  CHECK(rows("name,a,b,y\nfirst,1,2,3\n\"second, and last\",-4,5.5,6\n") == expected);
  CHECK(rows("y;note;b;a\r\n3;x;2;1\r\n6;;5.5;-4\r\n") == expected);
  CHECK(rows("y\ta\tb\tz\n3\t1\t2\t\n6\t-4\t5.5\t\n") == expected);
  CHECK(rows("\xef\xbb\xbf\"a\", \"b\" ,\"y\"\n\"1\",\"2\",\"3\"\n\"-4\" , 5.5,\"6\"\n") ==
        expected);
  CHECK(rows("text|a|b|y\n\"he said \"\"a|b\"\",\nand left\"|1|2|3\n|-4|5.5|6") == expected);
  CHECK(rows("a:b:y:u,v,w,z\n1:2:3:0\n-4:5.5:6:0\n", {{"delimiter", ":"}}) == expected);
}

TEST_CASE("csv: text labels, each with its own classes") {
  const TempDir dir;
  dir.Write("t.csv", "a,colour,size\n1,red,big\n2,blue,small\n3,red,tiny\n");
  const Kwargs fields = {{"data_fields", "x=a"}, {"label_fields", "(c=colour, s=size)"}};
  Kwargs kwargs = fields;
  kwargs.emplace_back("path", dir.path("t.csv"));
  const auto source = MakeSource("csv", kwargs);
  CHECK(source->class_names() == std::vector<std::string>{"blue", "red"});
  CHECK(source->found() == Kwargs{{"field_classes", "(c=blue, c=red, s=big, s=small, s=tiny)"}});
  CHECK(source->ClassOf(1) == 0);
  Sample sample;
  source->Read(2, &sample);
  CHECK(sample.labels[0].values[0] == 1);
  CHECK(sample.labels[1].values[0] == 2);
  // Another table is read with the classes of the first.
  dir.Write("u.csv", "a,colour,size\n1,red,tiny\n");
  Kwargs again = fields;
  again.emplace_back("path", dir.path("u.csv"));
  again.push_back(source->found()[0]);
  const auto alike = MakeSource("csv", again);
  alike->Read(0, &sample);
  CHECK(sample.labels[0].values[0] == 1);
  CHECK(sample.labels[1].values[0] == 2);
  dir.Write("u.csv", "a,colour,size\n1,green,tiny\n");
  CheckHas(WhyNoSource("csv", again),
           "u.csv:2: the label 'green' is not one of the 2 classes (blue, red)");
  // A column of numbers with a typo is not a column of classes.
  dir.Write("v.csv", "a,y\n1,10\n2,12\n3,1o\n");
  CheckHas(
      WhyNoSource("csv",
                  {{"path", dir.path("v.csv")}, {"data_fields", "x=a"}, {"label_fields", "y=y"}}),
      "v.csv:4: column 'y': '1o' is not a number");
}

TEST_CASE("csv: missing cells, means and standard deviations") {
  const TempDir dir;
  dir.Write("t.csv", "id,a,b,y\nr1,1,10,0\nr2,,20,1\nr3,3,NA,2\nr4,5,30,\n");
  const auto open = [&](Kwargs more) {
    more.insert(
        more.end(),
        {{"path", dir.path("t.csv")}, {"data_fields", "(x=a, x=b)"}, {"label_fields", "y=y"}});
    return MakeSource("csv", more);
  };
  Sample sample;
  const auto dropped = open({{"missing", "drop"}, {"key", "id"}});
  REQUIRE(dropped->size() == 1);
  CHECK(dropped->Name(0) == "r1");
  CheckHas(dropped->warnings().at(0),
           "3 of 4 rows have an empty cell and are skipped (first: " + dir.path("t.csv") + ":3)");

  const auto filled = open({{"missing", "mean"}, {"field_means", "(x=3, x=20)"}, {"key", "#"}});
  REQUIRE(filled->size() == 3);
  CHECK(filled->Name(2) == "3");
  filled->Read(1, &sample);
  CHECK(Values(sample.data[0].values) == std::vector<float>{3, 20});
  filled->Read(2, &sample);
  CHECK(Values(sample.data[0].values) == std::vector<float>{3, 20});
  CheckHas(filled->warnings().at(0),
           "2 empty cells replaced by the column's mean: 1 of column 'a', 1 of column 'b'");

  const auto scaled = open({{"missing", "drop"},
                            {"field_means", "(x=3, x=20, y=1)"},
                            {"field_stds", "(x=2, x=5, y=0.5)"}});
  scaled->Read(0, &sample);
  CHECK(Values(sample.data[0].values) == std::vector<float>{-1, -2});
  CHECK(Values(sample.labels[0].values) == std::vector<float>{-2});
  REQUIRE(scaled->label_fields()[0].units);
  std::vector<float> back = {-2};
  scaled->label_fields()[0].units->Restore(&back);
  CHECK(back[0] == 0);

  const auto raw = open({{"missing", "mean"}});
  const std::vector<ColumnStatistics> measured = MeasureColumns(*raw, {"x", "y"});
  REQUIRE(measured.size() == 2);
  CHECK(measured[0].mean == std::vector<double>{2, 15});
  CHECK(measured[0].std == std::vector<double>{1, 5});
  CHECK(measured[1].mean == std::vector<double>{1});
}

TEST_CASE("csv: a repeated name is refused for a column that is read, and told of otherwise") {
  const TempDir dir;
  dir.Write("r.csv", "a,a,b,y\n1,2,3,0\n");
  const auto params = [&](const char* column) {
    return Kwargs{{"path", dir.path("r.csv")}, {"data_fields", column}, {"label_fields", "y=y"}};
  };
  CheckHas(WhyNoSource("csv", params("x=a")),
           "r.csv has two columns 'a': 0 and 1, counted from 0; rename one of them");
  const auto source = MakeSource("csv", params("x=b"));
  REQUIRE(source->warnings().size() == 1);
  CheckHas(source->warnings()[0], "r.csv: several columns have the same name: a");
}

TEST_CASE("csv says what is wrong and where") {
  const TempDir dir;
  const auto with = [&](const std::string& text, Kwargs more = {}) {
    dir.Write("b.csv", text);
    more.emplace_back("path", dir.path("b.csv"));
    return WhyNoSource("csv", more);
  };
  CheckHas(with("1,2\n3,x\n"), "b.csv:2: column 1 (counted from 0): 'x' is not a number");
  CheckHas(
      with("1,2\n3,\n"),
      "b.csv:2: column 1 (counted from 0): the cell is empty; missing: mean replaces such cells");
  CheckHas(with("a,b\n1,2\n3,NaN\n"), "b.csv:3: column 'b': 'NaN' is not a number; missing: mean");
  CheckHas(with("1,2\n3,1e39\n"),
           "b.csv:2: column 1 (counted from 0): '1e39' is too large for float32");
  CheckHas(with("1,2\n3,-1e999\n"),
           "b.csv:2: column 1 (counted from 0): '-1e999' is too large for float32");
  CheckHas(with("1,2\n3,1e-60\n"),
           "b.csv:2: column 1 (counted from 0): '1e-60' is too small for float32; write 0");
  CheckHas(with(std::string("1,2\n3,4\0x\n", 10)),
           "b.csv:2: column 1 (counted from 0): '4\\x00x' is not a number");
  CheckHas(with("1,2\n3,inf\n"),
           "b.csv:2: column 1 (counted from 0): 'inf' is not a finite number");
  CheckHas(with("1;2\n3;2,5\n"),
           "b.csv:2: column 1 (counted from 0): '2,5' is not a number; set decimal: ',' for a "
           "table with decimal commas");
  CheckHas(with("a,b\n\"1,2\n"), "b.csv:2: a quote is opened and never closed");
  CheckHas(with("a,b\n\"1\"2,3\n"), "b.csv:2: text follows the quote that ends a cell");
  CheckHas(with("1,2\n", {{"delimiter", "xy"}}),
           "delimiter = 'xy': expected one character, tab, blanks or auto");
  CheckHas(with("1,\n", {{"missing", "drop"}}), "every row has an empty cell");
  CheckHas(with("1,2\n\n3\n"), "b.csv:3: 1 column, but the lines before have 2");
  CheckHas(with(""), "holds no line of numbers");
  CheckHas(with("a,b\n"), "holds no line of numbers");
  CheckHas(with("left,right\n1,2\n", {{"label_columns", "rigth"}}),
           "has no column 'rigth'; it has 2 columns, named left, right; did you mean 'right'?");
  CheckHas(with("1,2\n", {{"label_columns", "2"}}), "without names");
  CheckHas(with("left\n1\n", {{"label_columns", "rigth"}}),
           "it has 1 column, named left; its cells");
  // A text that is no table is not repeated in the message.
  const std::string word(1 << 20, 'x');
  CHECK(with("1,2\n3," + word + "\n").size() < 500);
  CHECK(with(word + "\n", {{"label_columns", "y"}}).size() < 500);
  CHECK(with(word + "\n", {{"data_fields", "data=y"}}).size() < 500);
  CHECK(with("a\n" + word + "\n", {{"data_fields", "data=a"}, {"picture_fields", "data"}}).size() <
        500);
  std::string many = "a";
  for (int i = 0; i < 1000; ++i) many += format(",column{}", i);
  CheckHas(with(many + "\n", {{"label_columns", "y"}}), "column48, and 951 more");
  CheckHas(with("1,2\n", {{"label_columns", "1,1"}}), "twice");
  CheckHas(with("1,2\n", {{"label_columns", "0,1"}}), "only label columns");
  CheckHas(with("1,2\n", {{"data_shape", "(3,)"}}), "data_shape = [3] needs 3 columns");
  CheckHas(with("1,2\n", {{"label_shape", "(3,)"}}), "no labels");
  CheckHas(with("1\n", {{"data_csv", "x"}}), "either 'path' or 'data_csv'");
  dir.Write("l.csv", "1\n2\n");
  dir.Write("d.csv", "1\n");
  CheckHas(WhyNoSource("csv", {{"data_csv", dir.path("d.csv")}, {"label_csv", dir.path("l.csv")}}),
           "holds 1 line, but");
  CheckHas(WhyNoSource("csv", {{"path", dir.path("none.csv")}}), "none.csv");
}

TEST_CASE("image_folder: classes and files in order, whatever the case of their extensions") {
  const TempDir dir;
  for (const char* name :
       {"dog/b.PNG", "dog/a.jpg", "dog/deep/c.Bmp", "cat/1.jpeg", "cat/.hidden.png", ".git/x.png"})
    dir.Write(name, EncodedImage());
  dir.Write("cat/notes.txt", "hello");
  dir.Write("readme.md", "beside the classes");
  dir.Write("stray.jpg", EncodedImage());
  dir.Write("phone.HEIC", "of no class, either");
  const auto source = MakeSource("image_folder", {{"path", dir.path()}});
  CHECK(source->class_names() == std::vector<std::string>{"cat", "dog"});
  REQUIRE(source->size() == 4);
  const std::vector<std::string> names = {"cat/1.jpeg", "dog/a.jpg", "dog/b.PNG", "dog/deep/c.Bmp"};
  for (int64_t i = 0; i < 4; ++i) CHECK(source->Name(i) == dir.path(names[static_cast<size_t>(i)]));
  Sample sample;
  source->Read(2, &sample);
  CHECK(sample.data[0].encoded == EncodedImage());
  CHECK(sample.labels[0].values[0] == 1.0f);
  REQUIRE(source->warnings().size() == 2);
  CheckHas(source->warnings()[0], "1 file skipped");
  CheckHas(source->warnings()[0], "notes.txt");
  CheckHas(
      source->warnings()[1],
      "2 images beside the class folders skipped, of no class (first: " + dir.path("phone.HEIC"));
}

TEST_CASE("image_folder: validation uses the classes of training") {
  const TempDir dir;
  dir.Write("b/1.png", EncodedImage());
  dir.Write("c/1.png", EncodedImage());
  dir.MakeFolder("a");
  CheckHas(WhyNoSource("image_folder", {{"path", dir.path()}}),
           "holds no images (.jpg .jpeg .png .bmp); fill it, remove it, or name it in exclude");
  const auto without = MakeSource("image_folder", {{"path", dir.path()}, {"exclude", "a"}});
  CHECK(without->class_names() == std::vector<std::string>{"b", "c"});
  dir.Write("c/thumbs/1.png", EncodedImage());
  CHECK(MakeSource("image_folder", {{"path", dir.path()}, {"exclude", "a"}})->size() == 3);
  CHECK(MakeSource("image_folder", {{"path", dir.path()}, {"exclude", "a,th*"}})->size() == 2);
  CheckHas(WhyNoSource("image_folder", {{"path", dir.path()}, {"exclude", "a,tmp"}}),
           "exclude: 'tmp': there is no such folder in");
  std::filesystem::remove_all(dir.path("c/thumbs"));
  const auto source = MakeSource("image_folder", {{"path", dir.path()}, {"classes", "c,b,a,z"}});
  CHECK(source->ClassOf(0) == 0);
  CHECK(source->Name(0) == dir.path("c/1.png"));
  CHECK(source->warnings().size() == 2);
  CheckHas(WhyNoSource("image_folder", {{"path", dir.path()}, {"classes", "b,a"}}),
           "the folder 'c' in");
  CheckHas(WhyNoSource("image_folder", {{"path", dir.path()}, {"classes", "b,a"}}),
           "is not one of the 2 classes (b, a)");
  CheckHas(WhyNoSource("image_folder", {{"path", dir.path("none")}}), "does not exist");
  CheckHas(WhyNoSource("image_folder", {{"path", dir.path("b")}}),
           "one folder per class is expected");
}

TEST_CASE("image_list: a folder, a file, a list") {
  const TempDir dir;
  dir.Write("2.png", EncodedImage());
  dir.Write("1.jpg", "text");
  dir.Write("in/3.png", EncodedImage());
  CHECK(MakeSource("image_list", {{"path", dir.path()}})->size() == 2);
  CHECK(MakeSource("image_list", {{"path", dir.path()}, {"recursive", "True"}})->size() == 3);
  CHECK(MakeSource("image_list", {{"path", dir.path("2.png")}})->size() == 1);
  ImageListParam param;
  param.Init({}, "image_list");
  param.files = {"b", "a,b"};
  const auto list = NewImageListSource(param);
  CHECK(list->Name(1) == "a,b");
  Sample sample;
  CHECK_THROWS_AS(list->Read(0, &sample), Error);
  dir.MakeFolder("empty");
  CheckHas(WhyNoSource("image_list", {{"path", dir.path("empty")}}), "no images");
  CheckHas(WhyNoSource("image_list", {}), "either 'path' or 'files'");
}

TEST_CASE("an unknown source or parameter gets the nearest known one") {
  CheckHas(
      WhyNoSource("minst", {}),
      "there is no data source 'minst'; did you mean 'mnist'?; known are box_csv, chat, cifar10, "
      "cifar100, coco, csv, "
      "image_archive, image_folder, image_list, labelled_text, list, mnist, record, text, "
      "text_lines, voc, yolo");
  CheckHas(WhyNoSource("mnist", {{"pth", "x"}}), "did you mean 'path'?");
  CheckHas(WhyNoSource("mnist", {}), "mnist needs the parameter 'path'");
}
