// SPDX-License-Identifier: Apache-2.0
// The source of RecordIO files: classes and boxes as MXNet's tools write them, and what is refused.
#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/io/boxes.h"
#include "mxtrain/io/class_names.h"
#include "mxtrain/io/image_record.h"
#include "mxtrain/io/record_file.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/image_bytes.h"
#include "tests/support/source_error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

using Strings = std::vector<std::string>;
using RecordNumbers = std::vector<float>;

struct RecordExample {
  RecordNumbers labels;
  std::string image = EncodePng(Pattern(4, 4, 1));
};

// Writes NAME and what belongs to it; returns its path.
std::string PackExamples(const TempDir& dir, const std::vector<RecordExample>& examples,
                         const std::string& name = "a.rec") {
  RecordWriter writer(dir.path(name));
  for (size_t i = 0; i < examples.size(); ++i)
    writer.Write(ImageRecordBytes({examples[i].labels, i, 0, examples[i].image}));
  writer.Commit();
  return dir.path(name);
}

std::unique_ptr<Source> OpenRecords(const std::string& path, const Kwargs& more = {}) {
  Kwargs kwargs = {{"path", path}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  return MakeSource("record", kwargs);
}

// What is said of the records; their file is FILE in it.
std::string WhyNoRecords(const std::vector<RecordExample>& examples, const Kwargs& more = {},
                         const std::string& names = "") {
  const TempDir dir;
  const std::string path = PackExamples(dir, examples);
  if (!names.empty()) dir.Write("a.classes", names);
  std::string why = MessageOf([&] { OpenRecords(path, more); });
  for (size_t at; (at = why.find(path)) != std::string::npos;) why.replace(at, path.size(), "FILE");
  for (size_t at; (at = why.find(dir.path())) != std::string::npos;)
    why.replace(at, dir.path().size(), "DIR");
  return why;
}

RecordNumbers RowOf(const Source& source, int64_t index) {
  Sample sample;
  const std::span<const float> label = source.LabelOf(index, 0, &sample);
  return {label.begin(), label.end()};
}

std::string ImageOf(const Source& source, int64_t index) {
  Sample sample;
  source.Read(index, &sample);
  return sample.data[0].encoded;
}

std::string RecognizedAs(const std::string& path) {
  const RecognizedSource found = RecognizeSource(path, "");
  return found.kind ? found.kind->name + (found.recognition.certain ? "!" : "") : "none";
}

}  // namespace

TEST_CASE("names of classes are lines, or refused") {
  const TempDir dir;
  const Strings names = {"cat", "guinea pig", "\xc3\xa4"};
  dir.Write("names", ClassNameLines(names));
  CHECK(ReadClassNames(dir.path("names")) == names);
  for (const char* const name : {"", " cat", "cat\t", "a\nb", "a\rb"})
    CHECK(Says(MessageOf([&] { (void)ClassNameLines({"dog", name}); }), "cannot be a line"));
}

TEST_CASE("a file written by hand as im2rec does") {
  const TempDir dir;
  const std::string header("\0\0\0\0\0\0\xe0\x40\x2a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
  dir.Write("a.rec",
            std::string("\x0a\x23\xd7\xce\x1a\0\0\0", 8) + header + std::string("\xff\xd8\0\0", 4));
  const auto source = OpenRecords(dir.path("a.rec"));
  CHECK(source->size() == 1);
  CHECK(RowOf(*source, 0) == RecordNumbers{7});
  CHECK(source->class_names() == Strings{"0", "1", "2", "3", "4", "5", "6", "7"});
  CHECK(ImageOf(*source, 0) == "\xff\xd8");
  CHECK(source->Name(0) == dir.path("a.rec") + "[0]");
  CHECK(source->FileOf(0).empty());
}

TEST_CASE("classes of records, with names and without") {
  const TempDir dir;
  const std::string other = "no image \x0a\x23\xd7\xce, kept as it is";
  const std::string path = PackExamples(dir, {{{2}}, {{0}, other}, {{1}, ""}, {{2}}});
  const auto check = [&](const Source& source, const Strings& names, const RecordNumbers& classes) {
    CHECK(source.class_names() == names);
    REQUIRE(source.label_fields().size() == 1);
    CHECK(source.label_fields()[0].name == "softmax_label");
    CHECK(source.label_fields()[0].kind == FieldKind::kValues);
    CHECK(source.label_fields()[0].shape.ndim() == 0);
    for (int64_t i = 0; i < 4; ++i) {
      CHECK(RowOf(source, i) == RecordNumbers{classes[static_cast<size_t>(i)]});
      CHECK(source.ClassOf(i) == static_cast<int>(classes[static_cast<size_t>(i)]));
    }
    CHECK(ImageOf(source, 1) == other);
    CHECK(ImageOf(source, 2).empty());
    CHECK(source.warnings().empty());
  };
  check(*OpenRecords(path), {"0", "1", "2"}, {2, 0, 1, 2});
  check(*OpenRecords(path, {{"classes", "(cat, dog, cow)"}}), {"cat", "dog", "cow"}, {2, 0, 1, 2});
  dir.Write("classes.txt", "ox\nhen\nfox\n");
  check(*OpenRecords(path), {"ox", "hen", "fox"}, {2, 0, 1, 2});
  dir.Write("a.classes", "cat\ndog\ncow\n");
  check(*OpenRecords(path), {"cat", "dog", "cow"}, {2, 0, 1, 2});
  // Of a training set with another order.
  check(*OpenRecords(path, {{"classes", "(cow, pig, dog, cat)"}}), {"cow", "pig", "dog", "cat"},
        {0, 3, 2, 0});
  check(*OpenRecords(path, {{"classes", "(x, y, z)"}}), {"x", "y", "z"}, {2, 0, 1, 2});
  // A list of one label behind the header is the same as one in it.
  RecordWriter writer(dir.path("list.rec"));
  std::string bytes = ImageRecordBytes({{0, 0}, 0, 0, "image"});
  bytes[0] = 1;
  writer.Write(bytes.substr(0, 28) + "image");
  writer.Commit();
  CHECK(ImageOf(*OpenRecords(dir.path("list.rec")), 0) == "image");
}

TEST_CASE("records without labels, and images as labels") {
  const TempDir dir;
  const std::string path = PackExamples(dir, {{{1, 2, 3}}, {{-1}}});
  const auto bare = OpenRecords(path, {{"labels", "False"}});
  CHECK(bare->label_fields().empty());
  CHECK(bare->class_names().empty());
  CHECK_FALSE(bare->ClassOf(0));
  CHECK(ImageOf(*bare, 1) == RecordExample{}.image);
  CHECK(OpenRecords(path, {{"label", "image"}})->label_fields()[0].kind == FieldKind::kImage);
}

TEST_CASE("a folder of files is one data set, in the order of their names") {
  const TempDir dir;
  PackExamples(dir, {{{0}}, {{1}}}, "part-1.rec");
  PackExamples(dir, {}, "part-0.rec");
  PackExamples(dir, {{{2}}}, "part-2.REC");
  const auto source = OpenRecords(dir.path());
  CHECK(source->size() == 3);
  CHECK(source->Name(0) == dir.path("part-1.rec") + "[0]");
  CHECK(source->Name(1) == dir.path("part-1.rec") + "[1]");
  CHECK(source->Name(2) == dir.path("part-2.REC") + "[0]");
  CHECK(RowOf(*source, 2) == RecordNumbers{2});
  for (const char* name : {"part-0.classes", "part-1.classes", "part-2.classes"})
    dir.Write(name, "a\nb\nc\n");
  CHECK(OpenRecords(dir.path())->class_names() == Strings{"a", "b", "c"});
  dir.Write("part-1.classes", "a\nc\nb\n");
  CHECK(WhyNoSource("record", {{"path", dir.path()}}) ==
        format("the classes of {0}/part-1.rec ({0}/part-1.classes) are not those of {0}/part-0.rec "
               "({0}/part-0.classes)",
               dir.path()));
  const TempDir none;
  CHECK(WhyNoSource("record", {{"path", none.path()}}) == none.path() + " has no .rec file in it");
  PackExamples(none, {});
  CHECK(WhyNoSource("record", {{"path", none.path()}}) == none.path() + " holds no records");
}

TEST_CASE("files of records are recognized") {
  const TempDir dir;
  dir.MakeFolder("set");
  const std::string path = PackExamples(dir, {{{0}}}, "set/a.rec");
  dir.Write("set/classes.txt", "cat\n");
  dir.Write("set/.hidden", "");
  CHECK(RecognizedAs(path) == "record!");
  CHECK(RecognizedAs(dir.path("set")) == "record!");
  CHECK(RecognizedAs(dir.path("set/a.idx")) == "list");
  dir.Write("set/b.png", "");
  CHECK(RecognizedAs(dir.path("set")) == "image_folder");
  dir.MakeFolder("empty.rec");
  CHECK(RecognizedAs(dir.path("empty.rec")) == "image_folder");
}

TEST_CASE("boxes of records are those of a table") {
  const TempDir dir;
  const std::vector<std::pair<int, int>> sizes = {{40, 20}, {500, 333}, {37, 1999}};
  std::string table = "image,xmin,ymin,xmax,ymax,class,difficult\n";
  std::vector<RecordExample> examples;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto [width, height] = sizes[k];
    const std::string name = format("{}.png", k);
    dir.Write(name, EncodePng(Gradient(height, width, 3)));
    RecordExample example{{2, 6}, ReadFile(dir.path(name))};
    for (size_t i = 0; i < 3 * k; ++i) {
      const double left = width * 0.013 * static_cast<double>(i), top = height / 7.0,
                   right = left + width / 3.0, bottom = height - 0.3 * static_cast<double>(i);
      table +=
          format("{},{},{},{},{},{},{}\n", name, left, top, right, bottom, "abc"[i % 3], i % 2);
      for (const double number : {static_cast<double>(i % 3), left / width, top / height,
                                  right / width, bottom / height, static_cast<double>(i % 2)})
        example.labels.push_back(static_cast<float>(number));
    }
    if (k == 0) table += name + ",,,,,,\n";
    examples.push_back(std::move(example));
  }
  dir.Write("boxes.csv", table);
  const auto wanted = MakeSource("box_csv", {{"path", dir.path("boxes.csv")}});
  const std::string path = PackExamples(dir, examples);
  dir.Write("a.classes", "a\nb\nc\n");
  const auto source = OpenRecords(path);
  CHECK(source->class_names() == wanted->class_names());
  CHECK(source->label_fields()[0].name == "label");
  CHECK(source->label_fields()[0].kind == FieldKind::kBoxes);
  CHECK(source->label_fields()[0].shape == wanted->label_fields()[0].shape);
  for (int64_t i = 0; i < source->size(); ++i) {
    const RecordNumbers rows = RowOf(*source, i), other = RowOf(*wanted, i);
    REQUIRE(rows.size() == other.size());
    for (size_t n = 0; n < rows.size(); ++n) {
      CAPTURE(n);
      CHECK(std::abs(rows[n] - other[n]) <= (n % 6 == 0 || n % 6 == 5 ? 0 : 0.01));
    }
    CHECK(ImageOf(*source, i) == ImageOf(*wanted, i));
    CHECK_FALSE(source->ClassOf(i));
  }
}

TEST_CASE("labels of boxes: longer headers, objects of other widths, rows that fill") {
  const TempDir dir;
  const std::string image = EncodePng(Pattern(10, 20, 1));
  const std::string path = PackExamples(
      dir, {{{4, 5, 640, 480, 1, 0.25f, 0.5f, 0.75f, 1}, image},
            {{2, 7, 0, 0, 0, 1, 1, 0, 9, 0, 0, 0, 1, 1, 1, 9, 0, 0, 0, 1, 1, 2, 9}, image},
            {{3, 6, 0}, image},
            {{2, 5, 0, 0, 0, 1, 1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0}, image}});
  const auto source = OpenRecords(path);
  CHECK(source->class_names() == Strings{"0", "1"});
  CHECK(source->label_fields()[0].shape == TShape{3, 6});
  CHECK(RowOf(*source, 0) == RecordNumbers{1, 5, 5, 15, 10, 0});
  CHECK(RowOf(*source, 1) ==
        RecordNumbers{0, 0, 0, 20, 10, 0, 0, 0, 0, 20, 10, 1, 0, 0, 0, 20, 10, 2});
  CHECK(RowOf(*source, 2).empty());
  CHECK(RowOf(*source, 3) == RecordNumbers{0, 0, 0, 20, 10, 0});
}

TEST_CASE("boxes are in the image as it is shown; without a size there are none") {
  const TempDir dir;
  const RecordNumbers label = {2, 5, 0, 0.5f, 0, 1, 1};
  const std::string turned = WithOrientation(EncodeJpeg(Gradient(10, 20, 3)), 6, true);
  const std::string far = EncodeJpeg(Gradient(30, 20, 3)),
                    comment = "\xff\xfe\xff\xff" + std::string(65'533, ' ');
  const std::string path =
      PackExamples(dir, {{label, turned},
                         {label, "GIF no image"},
                         {label, far.substr(0, 2) + comment + comment + far.substr(2)},
                         {label, SmallBmp{.rows = std::string(16, 'x')}.bytes()}});
  const auto source = OpenRecords(path);
  CHECK(RowOf(*source, 0) == RecordNumbers{0, 5, 0, 10, 20, 0});
  CHECK(RowOf(*source, 1).empty());
  CHECK(RowOf(*source, 2) == RecordNumbers{0, 10, 0, 20, 30, 0});
  CHECK(RowOf(*source, 3) == RecordNumbers{0, 1, 0, 2, 2, 0});
  CHECK(source->warnings() == Strings{"the size of 1 image is unknown, whose objects are dropped "
                                      "(first: " +
                                      path + "[1])"});
}

TEST_CASE("labels of another form are refused with their record") {
  const auto second = [&](const RecordNumbers& labels, const Kwargs& more = {}) {
    return WhyNoRecords({{{0}, "x"}, {labels, "x"}}, more);
  };
  CHECK(second({1}).empty());
  const std::string no_class =
      "FILE: record 1 at byte 36: the label {} is no class: these are whole "
      "numbers from 0";
  for (const float label : {-1.0f, 0.5f, 1e10f, INFINITY})
    CHECK(second({label}) == format(fmt::runtime(no_class), label));
  CheckHas(second({NAN}), "is no class");
  CHECK(second({1, 2, 3}) ==
        "FILE: record 1 at byte 36: 3 labels; expected one, a class: several plain numbers are not "
        "supported");
  CHECK(second({2, 5}) ==
        "FILE: record 1 at byte 36: 2 labels, which look like boxes (label_kind: boxes); expected "
        "one, a class: several plain numbers are not supported");
  CHECK(second({16'000}) ==
        "FILE: record 1 at byte 36: the class 16000 makes more than 10000 classes; name them if "
        "there are so many");
  CHECK(second({2}, {{"classes", "(cat, dog)"}}) ==
        "FILE: record 1 at byte 36: the class 2 has no name; the names are cat, dog, counted from "
        "0");
  CHECK(
      WhyNoRecords({{{1}}}, {{"classes", "(cow, cat)"}}, "cat\ndog\n") ==
      "FILE: record 0 at byte 0: the class 1 ('dog' by DIR/a.classes) is not one of the 2 classes "
      "(cow, cat)");
  CHECK(WhyNoRecords({{{1}}}, {}, "cat\n") ==
        "FILE: record 0 at byte 0: the class 1 has no name; the names in DIR/a.classes are cat, "
        "counted from 0");
  CHECK(WhyNoRecords({{{1}}}, {}, "cat\ncat\n") == "DIR/a.classes:2: a second class 'cat'");
}

TEST_CASE("boxes of another form are refused with their record") {
  const auto says = [](const RecordNumbers& labels) {
    return WhyNoRecords({{labels}}, {{"label_kind", "boxes"}});
  };
  const std::string record = "FILE: record 0 at byte 0: ";
  CHECK(says({2, 5, 0, 0, 0, 1, 1}).empty());
  const std::string form =
      ", which are no boxes: expected the sizes A >= 2 of a header and B >= 5 "
      "of an object, A - 2 more numbers of the header, and B for each object";
  CHECK(says({2}) == record + "1 label" + form);
  for (const RecordNumbers& labels : std::vector<RecordNumbers>{{1, 5, 0, 0, 0, 1, 1},
                                                                {2, 4, 0, 0, 0, 1},
                                                                {2, 5, 0, 0, 0, 1},
                                                                {2, 5.5f, 0, 0, 0, 1, 1},
                                                                {1e30f, 5},
                                                                {8, 5, 0, 0, 0, 1, 1},
                                                                {NAN, 5},
                                                                {2, INFINITY}})
    CHECK(says(labels) == record + Counted(labels.size(), "label") + form);
  CHECK(says({2, 5, 0, 0, 0, 1, 1, 0.5f, 0, 0, 1, 1}) ==
        record + "object 1: the class 0.5 is no whole number from 0");
  CheckHas(says({2, 5, -2, 0, 0, 1, 1}), "object 0: the class -2 is no whole number from 0");
  for (size_t i = 3; i < 7; ++i) {
    RecordNumbers labels = {2, 5, 0, 0, 0, 1, 1};
    labels[i] = 320;
    CHECK(says(labels) == record +
                              "object 0: 320 is not a share of the image's size, which goes "
                              "from 0 to 1; are these pixels?");
    labels[i] = NAN;
    CheckHas(says(labels), "nan is not a share");
  }
  CHECK(says({2, 5, 10'000, 0, 0, 1, 1}) ==
        record + "the class 10000 makes more than 10000 classes; name them if there are so many");
  // The kind is that of the first records.
  std::vector<RecordExample> examples(100, {{2, 5, 0, 0, 0, 1, 1}});
  examples.push_back({{3}});
  CheckHas(WhyNoRecords(examples), "record 100 at byte");
  CheckHas(WhyNoRecords(examples), ": 1 label" + form);
  examples[99] = {{3}};
  CheckHas(WhyNoRecords(examples), "record 0 at byte 0: 7 labels, which look like boxes");
}

TEST_CASE("a damaged record is a bad example, or is told when it is opened") {
  const TempDir dir;
  const std::string path = PackExamples(dir, {{{0}, "image"}, {{1}, "image"}}),
                    whole = ReadFile(path);
  std::string bytes = whole;
  bytes[33] ^= 1;
  dir.Write("a.rec", bytes);
  const auto source = OpenRecords(path);
  CHECK(RowOf(*source, 0) == RecordNumbers{0});
  CHECK(ImageOf(*source, 1) == "image");
  CHECK(MessageOf([&] { ImageOf(*source, 0); }) ==
        format("{0}: record 0 at byte 0: its 40 bytes are not those written: their checksum is not "
               "that in {0}.sums",
               path));
  bytes = whole;
  bytes[40] ^= 1;
  dir.Write("a.rec", bytes);
  CheckHas(MessageOf([&] { OpenRecords(path); }),
           path + ": record 1 at byte 40: expected the magic");
  dir.Write("text.rec", "not of this kind");
  CHECK(MessageOf([&] { OpenRecords(dir.path("text.rec")); }) ==
        dir.path("text.rec") +
            ": record 0 at byte 0: expected the magic number 0xced7230a of RecordIO at byte 0, got "
            "0x20746f6e");
}
