// SPDX-License-Identifier: Apache-2.0
// Lists, tables of images, CIFAR's files, and holdouts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/io/class_counts.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/internal/holdout_source.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/io/subset.h"
#include "tests/support/source_error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

std::vector<int> Classes(const Source& source) {
  std::vector<int> classes;
  for (int64_t i = 0; i < source.size(); ++i) classes.push_back(source.ClassOf(i).value());
  return classes;
}

std::vector<float> Label(const Source& source, int64_t index) {
  Sample sample;
  source.Read(index, &sample);
  return {sample.labels[0].values.begin(), sample.labels[0].values.end()};
}

using Strings = std::vector<std::string>;

// 60 images of class a, 30 of b, 11 of c.
std::unique_ptr<Source> Uneven(const TempDir& folder, const Kwargs& more) {
  Image image;
  image.Resize(1, 1, 1);
  const std::string bytes = EncodePng(image);
  const int counts[] = {60, 30, 11};
  for (int c = 0; c < 3; ++c) {
    if (std::filesystem::exists(folder.path(std::string(1, "abc"[c])))) continue;
    for (int i = 0; i < counts[c]; ++i) folder.Write(format("{}/{:02}.png", "abc"[c], i), bytes);
  }
  Kwargs kwargs{{"path", folder.path()}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  return MakeSource("image_folder", kwargs);
}

Strings Names(const Source& source) {
  Strings names;
  for (int64_t i = 0; i < source.size(); ++i) names.push_back(source.Name(i));
  return names;
}

}  // namespace

TEST_CASE("list: spaces, tabs or commas, class names or numbers, a root") {
  const TempDir folder;
  folder.Write("photos/x.png", "xx");
  folder.Write("words.txt",
               "# comment\nphotos/x.png cat\n\nphotos/y z.png\tdog\r\nphotos/w.png, cat\n");
  const auto words = MakeSource("list", {{"path", folder.path("words.txt")}});
  CHECK(words->class_names() == Strings{"cat", "dog"});
  CHECK(Classes(*words) == std::vector<int>{0, 1, 0});
  CHECK(words->Name(1) == folder.path("photos/y z.png"));
  Sample sample;
  words->Read(0, &sample);
  CHECK(sample.data[0].encoded == "xx");
  CHECK_THROWS_AS(words->Read(1, &sample), Error);

  const auto other = MakeSource(
      "list", {{"path", folder.path("words.txt")}, {"classes", "(dog, cat)"}, {"root", "/images"}});
  CHECK(Classes(*other) == std::vector<int>{1, 0, 1});
  CHECK(other->Name(2) == "/images/photos/w.png");

  folder.Write("numbers.csv", "a.png,2\nb.png,0\n");
  const auto numbers = MakeSource("list", {{"path", folder.path("numbers.csv")}});
  CHECK(numbers->class_names() == Strings{"0", "1", "2"});
  CHECK(Classes(*numbers) == std::vector<int>{2, 0});
  const auto named =
      MakeSource("list", {{"path", folder.path("numbers.csv")}, {"classes", "(x, y, z)"}});
  CHECK(named->class_names() == Strings{"x", "y", "z"});
}

TEST_CASE("list: several labels, and MXNet's lines") {
  const TempDir folder;
  folder.Write("photos/x.png", "xx");
  folder.Write("boxes.txt", "photos/x.png 0.5 1 -2\nphotos/x.png 1 2 3\n");
  const auto boxes = MakeSource("list", {{"path", folder.path("boxes.txt")}});
  CHECK(boxes->label_fields()[0].shape == TShape{3});
  CHECK(Label(*boxes, 0) == std::vector<float>{0.5f, 1, -2});
  CHECK(boxes->num_classes() == 0);
  folder.Write("all.lst", "0\t3.000000\tphotos/x.png\n1\t0.000000\tphotos/x.png\n");
  const auto reference = MakeSource("list", {{"path", folder.path("all.lst")}});
  CHECK(Classes(*reference) == std::vector<int>{3, 0});
  CHECK(Label(*reference, 0) == std::vector<float>{3});
}

TEST_CASE("labels that hold any number of classes") {
  const TempDir folder;
  for (const char* name : {"x.png", "y.png", "z.png"}) folder.Write(name, "xx");
  folder.Write("tags.csv", "x.png,cat;dog\ny.png,\nz.png,bird; cat\n");
  const auto tags = MakeSource("list", {{"path", folder.path("tags.csv")}, {"label_delim", ";"}});
  CHECK(tags->class_names() == Strings{"bird", "cat", "dog"});
  CHECK(tags->label_fields()[0].shape == TShape{3});
  CHECK(Label(*tags, 0) == std::vector<float>{0, 1, 1});
  CHECK(Label(*tags, 1) == std::vector<float>{0, 0, 0});
  CHECK(Label(*tags, 2) == std::vector<float>{1, 1, 0});
  CHECK(!tags->ClassOf(0));
  folder.Write("spaces.txt", "x.png\tcat dog\ny.png\tdog\n");
  CHECK(Label(*MakeSource("list", {{"path", folder.path("spaces.txt")},
                                   {"label_delim", " "},
                                   {"classes", "(dog, cat, cow)"}}),
              0) == std::vector<float>{1, 1, 0});
  folder.Write("numbers.txt", "x.png 0|2\ny.png 1\n");
  CHECK(Label(*MakeSource("list", {{"path", folder.path("numbers.txt")}, {"label_delim", "|"}}),
              0) == std::vector<float>{1, 0, 1});
  folder.Write("one.txt", "x.png cat\n");  // a single class is a row of one, too
  CHECK(MakeSource("list", {{"path", folder.path("one.txt")}, {"label_delim", ";"}})
            ->label_fields()[0]
            .shape == TShape{1});
  CheckHas(WhyNoSource("list", {{"path", folder.path("tags.csv")},
                                {"label_delim", ";"},
                                {"classes", "(cat, dogs, bird)"}}),
           "tags.csv:1: the label 'dog' is not one of the 3 classes (cat, dogs, bird); did you "
           "mean 'dogs'?");
  CheckHas(WhyNoSource("list", {{"path", folder.path("tags.csv")}}),
           "tags.csv:2: expected PATH LABEL");
  folder.Write("commas.csv", "x.png,cat,dog\n");
  CheckHas(WhyNoSource("list", {{"path", folder.path("commas.csv")}, {"label_delim", ","}}),
           "put a tab or a comma between path and label");
  folder.Write("empty.csv", "x.png,\ny.png,\n");
  CheckHas(WhyNoSource("list", {{"path", folder.path("empty.csv")}, {"label_delim", ";"}}),
           "no label names a class");
  // Held out without strata: there are no single classes.
  CHECK(MakeSource("list", {{"path", folder.path("tags.csv")},
                            {"label_delim", ";"},
                            {"holdout_folds", "3"},
                            {"holdout_side", "held_out"}})
            ->size() == 1);
}

TEST_CASE("labels by sets that would need far more memory than the list are rejected") {
  TempDir folder;
  std::string number, words;
  for (int i = 0; i < 100; ++i) number += format("{}.png\t{}\n", i, i == 0 ? 999'999 : 1);
  for (int i = 0; i < 5000; ++i) words += format("{}.png\tclass{}\n", i, i);
  folder.Write("number.txt", number);
  folder.Write("words.txt", words);
  CheckHas(
      WhyNoSource("list", {{"path", folder.path("number.txt")}, {"label_delim", ";"}}),
      "number.txt:1: the label 999999 makes 1000000 classes for 100 labels; is it a class number?");
  CheckHas(WhyNoSource("list", {{"path", folder.path("words.txt")}, {"label_delim", ";"}}),
           "5000 classes for 5000 examples with 5000 labels in all");
}

TEST_CASE("csv: labels that hold any number of classes, and numbers") {
  const TempDir folder;
  folder.Write("table.csv", "a,b,tags,size\n1,2,cat dog,5\n3,4,,6\n");
  const auto source = MakeSource("csv", {{"path", folder.path("table.csv")},
                                         {"data_fields", "(x=a, x=b)"},
                                         {"label_fields", "(y=tags, z=size)"},
                                         {"label_delim", " "}});
  CHECK(source->class_names() == Strings{"cat", "dog"});
  CHECK(source->label_fields()[0].shape == TShape{2});
  Sample sample;
  source->Read(1, &sample);
  CHECK(std::vector<float>(sample.labels[0].values.begin(), sample.labels[0].values.end()) ==
        std::vector<float>{0, 0});
  CHECK(sample.labels[1].values[0] == 6);
  CHECK(sample.data[0].values[1] == 4);
  CHECK(Label(*source, 0) == std::vector<float>{1, 1});
  CHECK(!source->ClassOf(0));
}

TEST_CASE("classes are counted by name, or by the numbers of a label") {
  const TempDir folder;
  CHECK(CountClasses(*Uneven(folder, {}), "", 4) == std::vector<int64_t>{60, 30, 11, 0});
  folder.Write("points.csv", "a,y,z\n1,0,2\n2,1,2\n3,1,0\n");
  const auto points = MakeSource("csv", {{"path", folder.path("points.csv")},
                                         {"data_fields", "(x=a)"},
                                         {"label_fields", "(y=y, z=z)"}});
  CHECK(CountClasses(*points, "y", 2) == std::vector<int64_t>{1, 2});
  CHECK(CountClasses(*points, "z", 3) == std::vector<int64_t>{1, 0, 2});
  CHECK_THROWS_WITH_AS(CountClasses(*points, "z", 2),
                       doctest::Contains("points.csv:2: the label 2 is not one of the 2 classes"),
                       Error);
  folder.Write("halves.csv", "a,y\n1,0\n2,0.5\n");
  const auto halves = MakeSource(
      "csv",
      {{"path", folder.path("halves.csv")}, {"data_fields", "(x=a)"}, {"label_fields", "(y=y)"}});
  CHECK_THROWS_WITH_AS(CountClasses(*halves, "y", 2),
                       doctest::Contains("halves.csv:3: the label 0.5 is not one of the 2 classes"),
                       Error);
  CHECK_THROWS_WITH_AS(CountClasses(*points, "w", 2), "the data have no classes to count", Error);
}

// Each word was once searched for among all given classes: with these, for minutes.
TEST_CASE("list: labels are found among many classes") {
  constexpr int kClasses = 200'000;
  const TempDir folder;
  std::string lines, classes;
  for (int i = 0; i < kClasses; ++i) {
    lines += format("{}.png\tclass {}\n", i, i);
    classes += format("{}class {}", i ? ", " : "(", kClasses - 1 - i);
  }
  folder.Write("list.txt", lines);
  const auto source =
      MakeSource("list", {{"path", folder.path("list.txt")}, {"classes", classes + ")"}});
  CHECK(source->ClassOf(0) == kClasses - 1);
  CHECK(source->ClassOf(kClasses - 1) == 0);
}

// A net with a class per example would take quadratic time.
TEST_CASE("list: words that differ on almost every line are not class names") {
  const TempDir folder;
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += format("{}.png\tname{}\n", i, i);
  folder.Write("list.txt", lines);
  CheckHas(WhyNoSource("list", {{"path", folder.path("list.txt")}}),
           "list.txt:1: the label 'name0' and the others make 20000 classes for 20000 labels");
  folder.Write("list.txt", lines + lines);
  CHECK(MakeSource("list", {{"path", folder.path("list.txt")}})->num_classes() == 20'000);
}

TEST_CASE("a class name that is not UTF-8 is refused: no model could store it") {
  const TempDir folder;
  const std::string whole = "a,y,z\n1,red,x\n2,caf\xc3\xa9,x\n",
                    broken = "a,y,z\n1,red,x\n2,caf\xe9,x\n";
  for (const char* label : {"l=y", "(k=z, l=y)"}) {
    CAPTURE(label);
    const Kwargs kwargs{
        {"path", folder.path("t.csv")}, {"data_fields", "x=a"}, {"label_fields", label}};
    folder.Write("t.csv", whole);
    CHECK(WhyNoSource("csv", kwargs) == "");
    folder.Write("t.csv", broken);
    CheckHas(WhyNoSource("csv", kwargs), "caf\\xe9");
    CheckHas(WhyNoSource("csv", kwargs), "' is not UTF-8, so a model of it could not be used");
  }
  folder.Write("list.txt", "1.png\tcaf\xe9\n2.png\tred\n");
  CheckHas(WhyNoSource("list", {{"path", folder.path("list.txt")}}),
           "list.txt: the class name 'caf\\xe9' is not UTF-8");
  Image image;
  image.Resize(1, 1, 1);
  for (const char* name : {"photos/red/1.png", "photos/caf\xe9/1.png"})
    folder.Write(name, EncodePng(image));
  CheckHas(WhyNoSource("image_folder", {{"path", folder.path("photos")}}),
           "photos: the class name 'caf\\xe9' is not UTF-8");
}

TEST_CASE("list says what is wrong and where") {
  const TempDir folder;
  const auto why = [&](const std::string& text, const Kwargs& more = {}) {
    folder.Write("list.txt", text);
    Kwargs kwargs{{"path", folder.path("list.txt")}};
    kwargs.insert(kwargs.end(), more.begin(), more.end());
    return WhyNoSource("list", kwargs);
  };
  CheckHas(why("a.png 1\nb.png\n"), "list.txt:2: expected PATH LABEL, got 'b.png'");
  CheckHas(why("a.png 1\nmy b.png 1\n"), "list.txt:2: 2 labels, but the lines before have 1");
  CheckHas(why("a.png 1 x\nb.png 1 2\n"),
           "list.txt:1: 'x' is not a number; several labels per line are numbers");
  CheckHas(why("# nothing\n"), "names no images");
  // A text that is no list is not repeated in the message.
  const std::string word(1 << 20, 'x');
  CheckHas(why(word), "list.txt:1: expected PATH LABEL, got 'xxx");
  CheckHas(why(word + " 1"), "list.txt:1: expected the path of an image, got 1048576 bytes: 'xxx");
  for (const std::string& text :
       {word, word + " 1", "a.png 1 " + word + "\n", "a.png " + word + "\n"}) {
    CHECK(why(text, {{"classes", "(cat, dog)"}}).size() < 500);
  }
  CheckHas(why("a.png 0\nb.png 7\n", {{"classes", "(x, y)"}}),
           "list.txt:2: the label 7 is outside the 2 classes (0 .. 1)");
  CheckHas(why("a.png -1\n"), "list.txt:1: the label -1 is no class: classes are numbered from 0");
  CheckHas(why("a.png xx\nb.png cot\n", {{"classes", "(cat, dog)"}}),
           "list.txt:1: the label 'xx' is not one of the 2 classes (cat, dog)");
  CheckHas(why("b.png cot\n", {{"classes", "(cat, dog)"}}), "did you mean 'cat'");
  CheckHas(WhyNoSource("list", {{"path", folder.path("none.txt")}}), "none.txt");
}

TEST_CASE("csv: images in columns, classes by name or number") {
  const TempDir folder;
  folder.Write("a.png", "aa");
  folder.Write("pairs.csv", "left,size,right,kind\na.png,1.5,b.png,dog\nb.png,2.5,a.png,cat\n");
  const Kwargs fields{{"path", folder.path("pairs.csv")},
                      {"data_fields", "(left=left, right=right, size=size)"},
                      {"label_fields", "(y=kind,)"},
                      {"picture_fields", "(left, right)"}};
  const auto source = MakeSource("csv", fields);
  CHECK(source->size() == 2);
  CHECK(source->data_fields()[1].kind == FieldKind::kImage);
  CHECK(source->data_fields()[2].kind == FieldKind::kValues);
  CHECK(source->class_names() == Strings{"cat", "dog"});
  CHECK(Classes(*source) == std::vector<int>{1, 0});
  Sample sample;
  CHECK_THROWS_AS(source->Read(0, &sample), Error);  // there is no b.png
  folder.Write("b.png", "bb");
  source->Read(1, &sample);
  CHECK(sample.data[0].encoded == "bb");
  CHECK(sample.data[1].encoded == "aa");
  CHECK(sample.data[2].values[0] == 2.5f);
  CHECK(sample.labels[0].values[0] == 0);

  Kwargs with_classes = fields;
  with_classes.emplace_back("classes", "(dog, cat)");
  CHECK(Classes(*MakeSource("csv", with_classes)) == std::vector<int>{0, 1});
  with_classes.back().second = "(dog, fish)";
  CheckHas(WhyNoSource("csv", with_classes),
           "pairs.csv:3: the label 'cat' is not one of the 2 classes (dog, fish)");

  folder.Write("numbers.csv", "a.png,3\nb.png,4\n");  // no header: columns by number
  const Kwargs numbers{{"path", folder.path("numbers.csv")},
                       {"data_fields", "(x=0,)"},
                       {"label_fields", "(y=1,)"},
                       {"picture_fields", "(x,)"}};
  CHECK(Label(*MakeSource("csv", numbers), 1) == std::vector<float>{4});
  CHECK(MakeSource("csv", numbers)->num_classes() == 0);
  Kwargs outside = numbers;
  outside.emplace_back("classes", "(a, b, c, d)");
  CheckHas(WhyNoSource("csv", outside),
           "numbers.csv:2: the label 4 is outside the 4 classes (0 .. 3)");
  folder.Write("broken.csv", "left,size,right,kind\na.png,big,b.png,dog\n");
  Kwargs broken = fields;
  broken[0].second = folder.path("broken.csv");
  CheckHas(WhyNoSource("csv", broken), "broken.csv:2: column 'size': 'big' is not a number");
}

TEST_CASE("cifar10 and cifar100: planes become pixels, names come from the adjacent file") {
  const TempDir folder;
  const auto record = [](std::string labels, int first) {
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 1024; ++i) labels += static_cast<char>(first + c * 50 + i % 7);
    }
    return labels;
  };
  for (int i = 1; i <= 5; ++i)
    folder.Write(format("data_batch_{}.bin", i),
                 record({static_cast<char>(i)}, i) + record({static_cast<char>(9)}, 20 + i));
  folder.Write("test_batch.bin", record({'\0'}, 90));
  const auto train = MakeSource("cifar10", {{"path", folder.path()}});
  CHECK(train->size() == 10);
  CHECK(train->data_fields()[0].shape == TShape{3, 32, 32});
  CHECK(Classes(*train) == std::vector<int>{1, 9, 2, 9, 3, 9, 4, 9, 5, 9});
  CHECK(train->Name(3) == folder.path("data_batch_2.bin") + "[1]");
  Sample sample;
  train->Read(3, &sample);
  CHECK(sample.labels[0].values[0] == 9);
  bool same = true;
  for (size_t i = 0; i < 1024; ++i) {
    for (size_t c = 0; c < 3; ++c)
      same = same && sample.data[0].pixels[3 * i + c] == 22 + c * 50 + i % 7;
  }
  CHECK(same);
  CHECK(train->class_names()[9] == "9");
  folder.Write("batches.meta.txt",
               "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  const auto test = MakeSource("cifar10", {{"path", folder.path()}, {"split", "test"}});
  CHECK(test->size() == 1);
  CHECK(test->class_names()[9] == "truck");

  folder.Write("train.bin", record("\x03\x63", 1) + record("\x04\x07", 2));
  const auto hundred = MakeSource("cifar100", {{"path", folder.path()}});
  CHECK(Classes(*hundred) == std::vector<int>{99, 7});
  CheckHas(WhyNoSource("cifar100", {{"path", folder.path()}, {"split", "test"}}),
           "has no test.bin");
  folder.Write("train.bin", record("\x03\x64", 1));
  CheckHas(WhyNoSource("cifar100", {{"path", folder.path()}}),
           "the label 100 of its image 0 is outside the 100 classes");
  folder.Write("test_batch.bin", record({'\0'}, 90) + "x");
  CheckHas(WhyNoSource("cifar10", {{"path", folder.path()}, {"split", "test"}}),
           "its 3074 bytes are not a multiple of the record size 3073");
}

TEST_CASE(
    "a holdout splits a source: disjoint, whole, each class in proportion, the same each time") {
  const TempDir folder;
  const auto all = Names(*Uneven(folder, {}));
  for (const char* part : {"0.1", "0.25", "0.5", "0.009"}) {
    for (const char* seed : {"0", "7"}) {
      const Kwargs holdout{{"holdout", part}, {"holdout_seed", seed}};
      Kwargs held = holdout;
      held.emplace_back("holdout_side", "held_out");
      const auto train = Uneven(folder, holdout), val = Uneven(folder, held);
      Strings both = Names(*train), val_names = Names(*val);
      CHECK(val->size() == std::max<int64_t>(1, std::llround(std::stod(part) * 101)));
      both.insert(both.end(), val_names.begin(), val_names.end());
      std::sort(both.begin(), both.end());
      CHECK(both == all);
      CHECK(Names(*Uneven(folder, held)) == val_names);
      const std::vector<int> classes = Classes(*val);
      const int64_t sizes[] = {60, 30, 11};
      for (int c = 0; c < 3; ++c) {
        const double exact = std::stod(part) * static_cast<double>(sizes[c]);
        CHECK(std::abs(static_cast<double>(std::count(classes.begin(), classes.end(), c)) - exact) <
              1);
      }
      CHECK(val->class_names() == Strings{"a", "b", "c"});
    }
  }
  const auto seed0 = Names(*Uneven(folder, {{"holdout", "0.3"}, {"holdout_side", "held_out"}}));
  const auto seed1 = Names(
      *Uneven(folder, {{"holdout", "0.3"}, {"holdout_side", "held_out"}, {"holdout_seed", "1"}}));
  CHECK(seed0 != seed1);
  const auto plain = Names(*Uneven(
      folder, {{"holdout", "0.3"}, {"holdout_side", "held_out"}, {"holdout_stratified", "False"}}));
  CHECK(plain.size() == 30);
  CHECK(plain != seed0);
}

TEST_CASE(
    "folds: every example is held out once, each class in proportion, and never trained on in that "
    "fold") {
  const TempDir folder;
  const auto all = Names(*Uneven(folder, {}));
  for (const int folds : {2, 5, 10, 101}) {
    Strings held;
    std::set<int64_t> sizes;
    for (int fold = 0; fold < folds; ++fold) {
      const Kwargs part{{"holdout_folds", std::to_string(folds)},
                        {"holdout_fold", std::to_string(fold)},
                        {"holdout_seed", "3"}};
      Kwargs side = part;
      side.emplace_back("holdout_side", "held_out");
      const auto train = Uneven(folder, part), val = Uneven(folder, side);
      Strings both = Names(*train), val_names = Names(*val);
      held.insert(held.end(), val_names.begin(), val_names.end());
      both.insert(both.end(), val_names.begin(), val_names.end());
      std::sort(both.begin(), both.end());
      CHECK(both == all);
      sizes.insert(val->size());
      const std::vector<int> classes = Classes(*val);
      const int counts[] = {60, 30, 11};
      for (int c = 0; c < 3; ++c) {
        const auto here = std::count(classes.begin(), classes.end(), c);
        CHECK(here >= counts[c] / folds);
        CHECK(here <= (counts[c] + folds - 1) / folds);
      }
    }
    std::sort(held.begin(), held.end());
    CHECK(held == all);
    CHECK(*sizes.rbegin() - *sizes.begin() <= 1);
  }
  CHECK(Names(*Uneven(folder, {{"holdout_folds", "5"}, {"holdout_seed", "1"}})) !=
        Names(*Uneven(folder, {{"holdout_folds", "5"}})));
  const auto why_not = [&](const char* folds, const char* fold) {
    try {
      Uneven(folder, {{"holdout_folds", folds}, {"holdout_fold", fold}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CheckHas(why_not("102", "0"), "101 examples are too few for 102 folds");
  CheckHas(why_not("5", "5"), "there is no fold 5 of 5");
  CheckHas(why_not("1", "0"), "at least two folds are needed");
}

// A split by positions drew another fifth as soon as one image was added, and a resumed run was
// then validated on images that it had been trained on.
TEST_CASE("images that are added, and a folder that moves, leave the split by files as it was") {
  const TempDir folder, moved;
  const auto below = [](const TempDir& root, const Kwargs& more) {
    Strings names;
    for (const std::string& name : Names(*Uneven(root, more)))
      names.push_back(name.substr(root.path().size()));
    return names;
  };
  const auto moves = [](const Strings& before, const Strings& after) {
    Strings gone, came;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                        std::back_inserter(gone));
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::back_inserter(came));
    return std::pair(gone.size(), came.size());
  };
  std::vector<Kwargs> splits = {{{"holdout", "0.2"}}, {{"holdout", "0.5"}}};
  for (int fold = 0; fold < 5; ++fold)
    splits.push_back({{"holdout_folds", "5"}, {"holdout_fold", std::to_string(fold)}});
  std::vector<Strings> before;
  for (Kwargs& split : splits) {
    split.insert(split.end(), {{"holdout_draw", "file"}, {"holdout_side", "held_out"}});
    before.push_back(below(folder, split));
    CHECK(before.back() == below(moved, split));
  }
  // One fold and the others are still all of the examples.
  Strings all;
  for (size_t k = 2; k < before.size(); ++k) {
    all.insert(all.end(), before[k].begin(), before[k].end());
    CHECK((before[k].size() == 20 || before[k].size() == 21));
  }
  std::sort(all.begin(), all.end());
  CHECK(all == below(folder, {}));

  const Kwargs by_position{{"holdout", "0.2"}, {"holdout_side", "held_out"}};
  const Strings old_draw = below(folder, by_position);
  for (const char* added : {"a/000.png", "b/0a.png", "c/zz.png"}) {
    CAPTURE(added);
    const TempDir grown;
    Uneven(grown, {});
    grown.Write(added, ReadFile(folder.path("a/00.png")));
    for (size_t k = 0; k < splits.size(); ++k) {
      CAPTURE(k);
      const auto [gone, came] = moves(before[k], below(grown, splits[k]));
      CHECK(gone <= (k < 2 ? 2 : 3));  // of folds: one for each class
      CHECK(came <= (k < 2 ? 2 : 4));  // with the new image itself
    }
    if (std::string(added) == "a/000.png")
      CHECK(moves(old_draw, below(grown, by_position)).first > 5);
  }
}

TEST_CASE("a split by files goes by row for tables that have none") {
  const TempDir folder;
  std::string rows = "size,label\n";
  for (int i = 0; i < 40; ++i) rows += format("{},{}\n", i, i % 2);
  folder.Write("table.csv", rows);
  const auto held = [&](const char* draw) {
    return Names(*MakeSource("csv", {{"path", folder.path("table.csv")},
                                     {"label_columns", "label"},
                                     {"holdout", "0.25"},
                                     {"holdout_side", "held_out"},
                                     {"holdout_draw", draw}}));
  };
  CHECK(held("file").size() == 10);
  CHECK(held("file") == held("position"));
}

TEST_CASE("a holdout reports an empty side") {
  const TempDir one;
  one.Write("list.txt", "a.png 0\n");
  CheckHas(WhyNoSource("list", {{"path", one.path("list.txt")}, {"holdout", "0.5"}}),
           "leaves nothing on one side");
  one.Write("list.txt", "a.png 0\nb.png 1\n");  // the only one of its class stays in training
  CheckHas(WhyNoSource(
               "list",
               {{"path", one.path("list.txt")}, {"holdout", "0.5"}, {"holdout_side", "held_out"}}),
           "leaves nothing on one side");
}

TEST_CASE("a pattern of file names keeps the images of a patient on one side") {
  const TempDir folder;
  for (int patient = 0; patient < 12; ++patient) {
    for (int image = 0; image < 1 + patient % 4; ++image)
      folder.Write(format("{}/p{}_{}.png", patient % 2 == 0 ? "sick" : "well", patient, image),
                   "x");
  }
  const auto names = [&folder](Kwargs more) {
    more.emplace_back("path", folder.path());
    return Names(*MakeSource("image_folder", more));
  };
  const auto patient_of = [](const std::string& name) {
    const std::string file = name.substr(name.rfind('/') + 1);
    return file.substr(0, file.find('_'));
  };
  const Kwargs split = {{"holdout", "0.3"}, {"holdout_group_pattern", "/(p[0-9]+)_"}};
  Kwargs held_side = split;
  held_side.emplace_back("holdout_side", "held_out");
  const Strings rest = names(split), held = names(held_side);
  std::set<std::string> patients;
  for (const std::string& name : held) patients.insert(patient_of(name));
  CHECK(patients.size() > 1);
  CHECK(rest.size() + held.size() == 30);
  CHECK(std::abs(static_cast<int>(held.size()) - 9) <= 2);
  for (const std::string& name : rest) CHECK(patients.count(patient_of(name)) == 0);
  const auto why = [&](const char* pattern) {
    return MessageOf([&] { names({{"holdout", "0.3"}, {"holdout_group_pattern", pattern}}); });
  };
  CheckHas(why("(p[0-9"), "holdout_group_pattern = '(p[0-9' is no regular expression");
  CheckHas(why("case"), "holdout_group_pattern = 'case' matches no file, such as '");
}
