// SPDX-License-Identifier: Apache-2.0
// Images with objects in them: the same data in all formats, folders, and what each format has of
// its own. What is refused is in box_source_errors_test.cc.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>

#include "mxtrain/base/file.h"
#include "mxtrain/io/boxes.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/error_message.h"
#include "tests/support/image_bytes.h"
#include "tests/support/temp_dir.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

using Strings = std::vector<std::string>;
using Rows = std::vector<std::vector<float>>;

struct Object {
  const char* name;
  double left, top, right, bottom;
};
struct Photo {
  const char* name;
  int width, height;
  std::vector<Object> objects;
};
const std::vector<Photo> kPhotos = {
    {"a", 40, 20, {{"cat", 1, 2, 11, 12}, {"dog", 20, 5, 39.5, 19}}},
    {"b", 10, 10, {}},
    {"c", 30, 50, {{"dog", 0, 10, 15, 30.25}, {"bird", 5, 5, 25, 45}, {"cat", -2, 0, 31, 50}}},
};
const Strings kNames = {"bird", "cat", "dog"};

std::string EmptyImage(int width, int height) {
  Image image;
  image.Resize(height, width, 1);
  return EncodePng(image);
}

void WritePhotos(const TempDir& dir, const std::string& folder) {
  for (const Photo& photo : kPhotos)
    dir.Write(folder + photo.name + ".png", EmptyImage(photo.width, photo.height));
}

std::string Xml(const std::vector<Object>& objects, const std::string& more = "") {
  std::string text = "<annotation><filename>x</filename>\n";
  for (const Object& o : objects) {
    text += format(
        "<object><name> {} </name><bndbox><xmin>{}</xmin><ymin>{}</ymin>\n<xmax>{}</xmax>"
        "<ymax>{}</ymax></bndbox>{}</object>\n",
        o.name, o.left, o.top, o.right, o.bottom, more);
  }
  return text + "</annotation>\n";
}

std::string YoloLines(const Photo& photo) {
  std::string text;
  for (const Object& o : photo.objects) {
    const auto number = std::find(kNames.begin(), kNames.end(), o.name) - kNames.begin();
    text += format("{} {:.6f} {:.6f} {:.6f} {:.6f}\n", number, (o.left + o.right) / 2 / photo.width,
                   (o.top + o.bottom) / 2 / photo.height, (o.right - o.left) / photo.width,
                   (o.bottom - o.top) / photo.height);
  }
  return text;
}

constexpr const char* kCategories =
    R"("categories": [{"id": 90, "name": "dog"}, {"id": 1, "name": "bird"},
                      {"name": "cat", "id": 7, "supercategory": "animal"}])";

std::string CocoText() {
  const std::map<std::string, int> ids = {{"bird", 1}, {"cat", 7}, {"dog", 90}};
  Strings images, annotations;
  for (const Photo& photo : kPhotos) {
    const auto image = 100 - images.size();
    images.push_back(format(R"({{"id": {}, "file_name": "{}.png", "width": {}}})", image,
                            photo.name, photo.width));
    for (const Object& o : photo.objects) {
      annotations.push_back(
          format(R"({{"segmentation": [[0, 0, 1, 0, 1, 1]], "image_id": {}, "area": 12.5,
                      "bbox": [{}, {}, {}, {}], "category_id": {}, "id": {}, "iscrowd": 0}})",
                 image, o.left, o.top, o.right - o.left, o.bottom - o.top, ids.at(o.name),
                 annotations.size()));
    }
  }
  // Those of several images are mixed.
  std::rotate(annotations.begin(), annotations.begin() + 2, annotations.begin() + 3);
  std::rotate(annotations.begin() + 2, annotations.begin() + 3, annotations.begin() + 4);
  return format(R"({{"info": {{"year": [1, {{"images": 2}}]}}, "annotations": [{}], {},
                    "licenses": [{{"id": 1}}], "images": [{}]}})",
                join(annotations, ",\n"), kCategories, join(images, ",\n"));
}

std::string CsvText() {
  std::string text =
      "\xef\xbb\xbf"
      "filename;width;Class;XMin;ymin;ymax;xmax\r\n";
  for (const Photo& photo : kPhotos) {
    if (photo.objects.empty()) text += format("\"{}.png\";{};;;;;\r\n", photo.name, photo.width);
    for (const Object& o : photo.objects) {
      text += format("\"{}.png\";{};{};{};{};{};{}\r\n", photo.name, photo.width, o.name, o.left,
                     o.top, o.bottom, o.right);
    }
  }
  return text;
}

// Writes the photos to images/ and what is in them as this kind has it.
Kwargs WriteAs(const std::string& kind, const TempDir& dir) {
  WritePhotos(dir, "images/");
  if (kind == "coco") {
    dir.Write("annotations.json", CocoText());
    return {{"path", dir.path("annotations.json")}};
  }
  if (kind == "box_csv") {
    dir.Write("boxes.csv", CsvText());
    return {{"path", dir.path("boxes.csv")}, {"root", dir.path("images")}};
  }
  for (const Photo& photo : kPhotos) {
    if (kind == "voc") dir.Write(format("Annotations/{}.xml", photo.name), Xml(photo.objects));
    if (kind == "yolo" && !photo.objects.empty())
      dir.Write(format("labels/{}.txt", photo.name), YoloLines(photo));
  }
  if (kind == "yolo") dir.Write("labels/classes.txt", "bird\ncat\ndog\n\n");
  return {{"path", dir.path()}};
}

std::vector<float> LabelOf(const Source& source, int64_t index) {
  Sample sample;
  const std::span<const float> label = source.LabelOf(index, 0, &sample);
  return {label.begin(), label.end()};
}

// The objects of an image, six numbers each.
Rows RowsOf(const Source& source, int64_t index) {
  const auto columns = static_cast<size_t>(source.label_fields()[0].shape[1]);
  const std::vector<float> label = LabelOf(source, index);
  Rows rows;
  for (size_t i = 0; i < label.size(); i += columns)
    rows.emplace_back(label.begin() + static_cast<std::ptrdiff_t>(i),
                      label.begin() + static_cast<std::ptrdiff_t>(i) + kBoxColumns);
  return rows;
}

void CheckNear(const Rows& rows, const Rows& wanted, double tolerance) {
  REQUIRE(rows.size() == wanted.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < wanted[i].size(); ++k) {
      CAPTURE(i);
      CAPTURE(k);
      CHECK(std::abs(rows[i][k] - wanted[i][k]) <= tolerance);
    }
  }
}

Kwargs With(Kwargs kwargs, const Kwargs& more) {
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  return kwargs;
}

Strings NamesOf(const Source& source, const TempDir& dir) {
  Strings names;
  for (int64_t i = 0; i < source.size(); ++i) {
    CHECK(source.Name(i) == source.FileOf(i));
    names.push_back(source.Name(i).substr(dir.path().size() + 1));
  }
  return names;
}

std::string Recognized(const std::string& path) {
  const RecognizedSource found = RecognizeSource(path, "");
  if (!found.kind) return "none";
  return found.kind->name + (found.recognition.certain ? "!" : "");
}

const std::vector<const char*> kKinds = {"voc", "yolo", "coco", "box_csv"};

}  // namespace

TEST_CASE("the same objects are read from every format") {
  for (const std::string kind : kKinds) {
    CAPTURE(kind);
    const double tolerance = kind == "yolo" ? 1e-3 : 0;
    for (const Strings& order : {Strings{}, Strings{"dog", "cow", "cat", "bird"}}) {
      const TempDir dir;
      const Kwargs kwargs = WriteAs(kind, dir);
      const auto source = MakeSource(
          kind, order.empty() ? kwargs : With(kwargs, {{"classes", params::Print(order)}}));
      CHECK(source->class_names() == (order.empty() ? kNames : order));
      CHECK(NamesOf(*source, dir) == Strings{"images/a.png", "images/b.png", "images/c.png"});
      CHECK(source->warnings().empty());
      const FieldSpec& field = source->label_fields()[0];
      CHECK(field.kind == FieldKind::kBoxes);
      CHECK(field.shape == TShape{3, kind == "coco" ? 7 : 6});
      const float bird = order.empty() ? 0 : 3, cat = order.empty() ? 1 : 2,
                  dog = order.empty() ? 2 : 0;
      CheckNear(RowsOf(*source, 0), {{cat, 1, 2, 11, 12, 0}, {dog, 20, 5, 39.5f, 19, 0}},
                tolerance);
      CHECK(RowsOf(*source, 1).empty());
      CheckNear(RowsOf(*source, 2),
                {{dog, 0, 10, 15, 30.25f, 0}, {bird, 5, 5, 25, 45, 0}, {cat, -2, 0, 31, 50, 0}},
                tolerance);
      Sample sample;
      source->Read(0, &sample);
      CHECK(sample.data[0].encoded == EmptyImage(40, 20));
      CHECK(sample.labels[0].values.size() == static_cast<size_t>(2 * field.shape[1]));
    }
  }
}

TEST_CASE("every format is recognized") {
  for (const std::string kind : kKinds) {
    CAPTURE(kind);
    const TempDir dir;
    const Kwargs kwargs = WriteAs(kind, dir);
    CHECK(Recognized(kwargs[0].second) == kind + "!");
  }
}

TEST_CASE("what only looks like a format is not recognized") {
  const TempDir dir;
  const auto holds = [&dir](const std::string& name, const std::string& text) {
    dir.Write(name, text);
    return Recognized(dir.path(name));
  };
  CHECK(holds("empty.json", "") == "list");
  CHECK(holds("other.json", R"({"images": ["a.png"], "names": []})") == "list");
  CHECK(holds("list.json", R"([{"images": 1, "file_name": 2}])") == "list");
  CHECK(holds("values.json", R"({"a": "images", "b": "file_name"})") == "list");
  CHECK(holds("begin.json", "\n {\"images\" : [{\"file_name\": \"a.png\", \"id\"") == "coco!");
  CHECK(holds("last.json", R"({"annotations": [{"image_id": 1, "category_id": 2)") == "coco!");
  CHECK(holds("table.csv", "image,xmin,ymin,xmax\na.png,1,2,3\n") == "list");
  CHECK(holds("boxes.txt", "Path\tX1\tY1\tX2\tY2\tscore\n") == "box_csv!");
  CHECK(holds("boxes.dat", "Path\tX1\tY1\tX2\tY2\tscore\n") == "list");

  dir.Write("one/_annotations.coco.json", CocoText());
  const RecognizedSource folder = RecognizeSource(dir.path("one"), "");
  REQUIRE(folder.kind);
  CHECK(folder.kind->name == "coco");
  CHECK(folder.recognition.params == Kwargs{{"path", dir.path("one/_annotations.coco.json")}});

  const auto lines = [&dir](const std::string& name, const std::string& text) {
    dir.Write(name + "/1.png", "");
    dir.Write(name + "/0.txt", "\n");  // of an image without objects
    dir.Write(name + "/1.txt", text);
    dir.Write(name + "/classes.txt", "cat\n");
    return Recognized(dir.path(name));
  };
  CHECK(lines("boxes", "0 0.5 0.5 0.2 0.2") == "yolo!");
  CHECK(lines("polygons", "0 0.5 0.5 0.2 0.2 0.3 0.1\n1 0.5 0.5 1 1\n") == "yolo!");
  CHECK(lines("pixels", "0 120 55 20 20\n") == "image_folder");
  CHECK(lines("scores", "0 0.5 0.5 0.2 0.2 0.9\n") == "image_folder");
  CHECK(lines("words", "a photo of a cat\n") == "image_folder");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "12 0.5 0.25 0.125 0.0625\n";
  CHECK(lines("many", many) == "yolo!");
}

TEST_CASE("voc: the folders of a devkit, and sets") {
  const TempDir dir;
  WritePhotos(dir, "VOC/JPEGImages/");
  dir.Write("VOC/Annotations/a.xml", Xml(kPhotos[0].objects, "<difficult>1</difficult>"));
  dir.Write("VOC/Annotations/c.xml", Xml(kPhotos[2].objects));
  dir.Write("VOC/ImageSets/Main/one.txt", "c\nnone\n");
  dir.Write("VOC/ImageSets/Main/cat_one.txt", "a -1\nc  1\n");
  CHECK(Recognized(dir.path("VOC")) == "voc!");
  const auto all = MakeSource("voc", {{"path", dir.path("VOC")}});
  CHECK(NamesOf(*all, dir) == Strings{"VOC/JPEGImages/a.png", "VOC/JPEGImages/c.png"});
  CHECK(all->warnings() == Strings{"1 image without an annotation skipped (first: " +
                                   dir.path("VOC/JPEGImages/b.png") + ")"});
  CHECK(RowsOf(*all, 0) == Rows{{1, 1, 2, 11, 12, 1}, {2, 20, 5, 39.5f, 19, 1}});
  CHECK(RowsOf(*all, 1)[0] == std::vector<float>{2, 0, 10, 15, 30.25f, 0});
  for (const char* set : {"one", "cat_one"}) {
    const auto source = MakeSource(
        "voc",
        {{"path", dir.path("VOC")}, {"set", dir.path(format("VOC/ImageSets/Main/{}.txt", set))}});
    CHECK(NamesOf(*source, dir) == Strings{"VOC/JPEGImages/c.png"});
  }
  const auto apart = MakeSource(
      "voc", {{"path", dir.path("VOC/JPEGImages")}, {"annotations", dir.path("VOC/Annotations")}});
  CHECK(apart->size() == 2);
}

TEST_CASE("yolo: labels are found as Ultralytics, Darknet and labelImg have them") {
  struct Layout {
    const char *images, *labels, *path, *names;
  };
  for (const Layout& layout : std::vector<Layout>{
           {"images/train/", "labels/train/", "images/train", "classes.txt"},
           {"images/train/", "labels/train/", "", "labels/train/classes.txt"},
           {"images/x/images/", "images/x/labels/", "images/x/images", "images/x/my.names"},
           {"images/x/images/", "images/x/labels/", "images/x", "images/obj.names"},
           {"obj/", "obj/", "obj", "obj.names"},
           {"some/", "some/", "some", "some/classes.txt"},
           {"JPEGImages/", "labels/", "", "labels/classes.txt"},
           {"JPEGImages/", "labels/", "JPEGImages", "_darknet.labels"}}) {
    CAPTURE(layout.images);
    CAPTURE(layout.path);
    const TempDir dir;
    WritePhotos(dir, layout.images);
    for (const Photo& photo : kPhotos)
      dir.Write(format("{}{}.txt", layout.labels, photo.name), YoloLines(photo));
    dir.Write(layout.names, "bird\r\ncat\r\ndog\r\n");
    const std::string path = dir.path(layout.path);
    CHECK(Recognized(path) == "yolo!");
    const auto source = MakeSource("yolo", {{"path", path}});
    CHECK(source->class_names() == kNames);
    CHECK(source->size() == 3);
    CHECK(source->Name(0) == (std::filesystem::path(dir.path(layout.images)) / "a.png").string());
    CheckNear(RowsOf(*source, 0), {{1, 1, 2, 11, 12, 0}, {2, 20, 5, 39.5f, 19, 0}}, 1e-3);
    CHECK(RowsOf(*source, 1).empty());
  }
}

TEST_CASE("yolo: a list of images, and a folder of annotations") {
  const TempDir dir;
  WritePhotos(dir, "data/images/");
  for (const Photo& photo : kPhotos)
    dir.Write(format("data/labels/{}.txt", photo.name), YoloLines(photo));
  dir.Write("data/train.txt",
            "./images/c.png\r\n\n" + dir.path("data/images/a.png") + "\nimages/none.png\n");
  const auto list = MakeSource("yolo", {{"path", dir.path("data/train.txt")}});
  CHECK(NamesOf(*list, dir) ==
        Strings{"data/images/c.png", "data/images/a.png", "data/images/none.png"});
  CHECK(list->class_names() == Strings{"0", "1", "2"});
  CHECK(RowsOf(*list, 0).size() == 3);
  CHECK(RowsOf(*list, 2).empty());
  Sample sample;
  CHECK_THROWS_AS(list->Read(2, &sample), Error);

  dir.Write("other/b.txt", "0 0.5 0.5 1 1\n");
  const auto other =
      MakeSource("yolo", {{"path", dir.path("data")}, {"annotations", dir.path("other")}});
  CHECK(RowsOf(*other, 0).empty());
  CHECK(RowsOf(*other, 1) == Rows{{0, 0, 0, 10, 10, 0}});
  CHECK(other->class_names() == Strings{"0"});
  // There is no file of names: they are those of the numbers.
  const auto named = MakeSource("yolo", {{"path", dir.path("data")}, {"classes", "(x, y, z, u)"}});
  CHECK(named->class_names() == Strings{"x", "y", "z", "u"});
  CHECK(RowsOf(*named, 0)[1][0] == 2);
  // Nor does a file that has none of them say more.
  dir.Write("data/classes.txt", "bird\ncat\ndog\n");
  const auto renamed = MakeSource("yolo", {{"path", dir.path("data")}, {"classes", "(x, y, z)"}});
  CHECK(renamed->class_names() == Strings{"x", "y", "z"});
  CHECK(RowsOf(*renamed, 0)[1][0] == 2);
}

TEST_CASE("yolo: polygons, numbers in other words, and boxes beyond the image") {
  const TempDir dir;
  dir.Write("a.png", EmptyImage(40, 20));
  dir.Write("a.txt",
            "\xef\xbb\xbf"
            "1.0 0.25 0.5 +0.5 1e-1\r\n"
            "  0\t0.5 0.75  0.25 0.5\t1 0.5 0.75 1.25  \n");
  const auto source = MakeSource("yolo", {{"path", dir.path()}});
  CheckNear(RowsOf(*source, 0), {{1, 0, 9, 20, 11, 0}, {0, 10, 10, 40, 25, 0}}, 1e-5);
}

TEST_CASE("yolo: sizes are those of images as they are shown, of any format") {
  const TempDir dir;
  const std::string jpeg = EncodeJpeg(Gradient(20, 40, 3));
  dir.Write("large.jpg", jpeg.substr(0, 2) + "\xff\xe2" + Number(65000, 2, true) +
                             std::string(64998, 'x') + "\xff\xe2" + Number(65000, 2, true) +
                             std::string(64998, 'x') + jpeg.substr(2));
  dir.Write("shown.bmp", SmallBmp{.rows = std::string(16, 'x')}.bytes());
  dir.Write("turned.jpg", WithOrientation(jpeg, 6, true));
  for (const char* name : {"large", "shown", "turned"})
    dir.Write(format("{}.txt", name), "0 0.5 0.5 1 0.5\n");
  const auto source = MakeSource("yolo", {{"path", dir.path()}});
  CHECK(RowsOf(*source, 0) == Rows{{0, 0, 5, 40, 15, 0}});
  CHECK(RowsOf(*source, 1) == Rows{{0, 0, 0.5f, 2, 1.5f, 0}});
  CHECK(RowsOf(*source, 2) == Rows{{0, 0, 10, 20, 30, 0}});
}

TEST_CASE("yolo: an image without a size stays, without its objects") {
  const TempDir dir;
  dir.Write("a.png", "no image");
  dir.Write("b.png", EmptyImage(4, 4));
  for (const char* name : {"a", "b"}) dir.Write(format("{}.txt", name), "0 0.5 0.5 1 1\n");
  const auto source = MakeSource("yolo", {{"path", dir.path()}});
  CHECK(source->size() == 2);
  CHECK(RowsOf(*source, 0).empty());
  CHECK(RowsOf(*source, 1) == Rows{{0, 0, 0, 4, 4, 0}});
  CHECK(source->warnings() ==
        Strings{"the size of 1 image is unknown, whose objects are dropped (first: " +
                dir.path("a.png") + ")"});
}

// A disk that fails once, a file that comes late: learnt as an image without objects.
TEST_CASE("yolo: an image that cannot be read when its size is wanted is not read later") {
  const TempDir dir;
  dir.Write("b.png", EmptyImage(4, 4));
  for (const char* name : {"a", "b"}) dir.Write(format("{}.txt", name), "0 0.5 0.5 1 1\n");
  dir.Write("images.list.txt", "./a.png\n./b.png\n");
  const auto source = MakeSource("yolo", {{"path", dir.path("images.list.txt")}});
  CHECK(source->warnings() ==
        Strings{"the size of 1 image is unknown, whose objects are dropped (first: " +
                dir.path("a.png") + ")"});
  dir.Write("a.png", EmptyImage(4, 4));
  Sample sample;
  CHECK(Says(MessageOf([&] { source->Read(0, &sample); }), "a.png"));
  source->Read(1, &sample);
  CHECK(sample.labels[0].values.size() == 6);
}

TEST_CASE("coco: crowds, areas, polygons, and ids of text") {
  const TempDir dir;
  dir.Write("a.png", EmptyImage(40, 20));
  dir.Write("boxes.json", R"({"images": [{"id": "x", "file_name": "a.png"}],
    "annotations": [
      {"id": 1, "image_id": "x", "category_id": 3, "bbox": [1, 2, 3.5, 4], "iscrowd": 1,
       "area": 6, "segmentation": {"counts": [1, 2, 3], "size": [20, 40]}},
      {"image_id": "x", "category_id": "10", "segmentation": [[5, 6, 9, 6, 7, 12.5],
       [4, 8, 5, 8, 5, 9]], "iscrowd": false, "attributes": {"bbox": [1], "id": {}}},
      {"image_id": "x", "category_id": 10.0, "bbox": null, "segmentation": [1, 2, 3, 4, 1, 4]}],
    "categories": [{"id": 10, "name": "ten"}, {"id": 3, "name": "three"}]})");
  const auto source = MakeSource("coco", {{"path", dir.path("boxes.json")}});
  CHECK(source->class_names() == Strings{"three", "ten"});
  CHECK(LabelOf(*source, 0) == std::vector<float>{0, 1, 2, 4.5f, 6,     2, 6,   //
                                                  1, 4, 6, 9,    12.5f, 0, -1,  //
                                                  1, 1, 2, 3,    4,     0, -1});
}

TEST_CASE("coco: iscrowd is a number, true or false") {
  const TempDir dir;
  const auto open = [&](const std::string& crowd) {
    dir.Write("boxes.json", format(R"({{"images": [{{"id": 1, "file_name": "a.png"}}],
      "annotations": [{{"id": 8, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "iscrowd": {}}}],
      "categories": [{{"id": 1, "name": "one"}}]}})",
                                   crowd));
    return MakeSource("coco", {{"path", dir.path("boxes.json")}});
  };
  for (const char* none : {"0", "false", "null"}) CHECK(RowsOf(*open(none), 0)[0][5] == 0);
  for (const char* crowd : {"1", "true"}) CHECK(RowsOf(*open(crowd), 0)[0][5] == 2);
  for (const char* odd : {R"("yes")", R"("1")"}) {
    CHECK(Says(MessageOf([&] { open(odd); }), "annotation 8: its \"iscrowd\" is neither 0 nor 1"));
  }
}

TEST_CASE("coco: images are found beside the file") {
  for (const char* folder : {"annotations/", "annotations/images/", "images/", "val2017/",
                             "images/val2017/", "annotations/val2017/"}) {
    CAPTURE(folder);
    const TempDir dir;
    WritePhotos(dir, folder);
    dir.Write("annotations/instances_val2017.json", CocoText());
    const auto source =
        MakeSource("coco", {{"path", dir.path("annotations/instances_val2017.json")}});
    CHECK(source->Name(0) == dir.path(std::string(folder) + "a.png"));
    CHECK(source->warnings().empty());
  }
  const TempDir dir;
  dir.Write("boxes.json", CocoText());
  const auto lost = MakeSource("coco", {{"path", dir.path("boxes.json")}});
  CHECK(lost->Name(0) == dir.path("a.png"));
  REQUIRE(lost->warnings().size() == 1);
  CheckHas(lost->warnings()[0], dir.path("boxes.json") + ": the image a.png is not in " +
                                    dir.path("") + ", " + dir.path("images/"));
  CheckHas(lost->warnings()[0], "; name the folder of the images as root");
  const auto given = MakeSource("coco", {{"path", dir.path("boxes.json")}, {"root", "/photos"}});
  CHECK(given->Name(0) == "/photos/a.png");
  CHECK(given->warnings().empty());
}

TEST_CASE("coco: a category without objects needs no class") {
  const TempDir dir;
  dir.Write("boxes.json", R"({"images": [{"id": 1, "file_name": "a.png"}], "annotations": [
      {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}],
    "categories": [{"id": 0, "name": "animals"}, {"id": 1, "name": "cat"}]})");
  const auto source =
      MakeSource("coco", {{"path", dir.path("boxes.json")}, {"classes", "(dog, cat)"}});
  CHECK(RowsOf(*source, 0) == Rows{{1, 1, 2, 4, 6, 0}});
}

TEST_CASE("box_csv: names of columns") {
  const TempDir dir;
  const auto rows = [&dir](const std::string& text) {
    dir.Write("boxes.csv", text);
    return MakeSource("box_csv", {{"path", dir.path("boxes.csv")}});
  };
  const Rows wanted = {{0, 1, 2, 4, 6, 0}};
  for (const char* text :
       {"x/a.png,1,2,4,6,cat\n", "path,x1,y1,x2,y2,class\nx/a.png,1,2,4,6,cat\n",
        "label\tfile\tbottom\tright\ttop\tleft\ncat\tx/a.png\t6\t4\t2\t1\n",
        "image_path,name,x,y,w,h\nx/a.png,cat,1,2,3,4\n",
        "image,category,x,y,height,width\nx/a.png,cat,1,2,4,3\n",
        "x,y,width,height,x1,y1,x2,y2,image,class\n0,0,9,9,1,2,4,6,x/a.png,cat\n",
        "\"Image\",\"CLASS_NAME\",XMin,XMax,YMin,YMax\n\"x/a.png\",\" cat\n\",1,4,2,6\n"}) {
    CAPTURE(text);
    const auto source = rows(text);
    CHECK(source->class_names() == Strings{"cat"});
    CHECK(NamesOf(*source, dir) == Strings{"x/a.png"});
    CHECK(RowsOf(*source, 0) == wanted);
  }
  const auto ids = rows(
      "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\n"
      "00f,x,/m/01,1,1,4,2,6\n01.png,x,/m/01,1,1,4,2,6\n");
  CHECK(NamesOf(*ids, dir) == Strings{"00f.jpg", "01.png"});
  const auto uses = rows(
      "image,class,x1,y1,x2,y2,difficult,IsCrowd\na,c,1,2,4,6,1,\na,c,1,2,4,6,0,True\n"
      "a,c,1,2,4,6,1,1\na,c,1,2,4,6,,0\n");
  CHECK(RowsOf(*uses, 0) ==
        Rows{{0, 1, 2, 4, 6, 1}, {0, 1, 2, 4, 6, 2}, {0, 1, 2, 4, 6, 2}, {0, 1, 2, 4, 6, 0}});
}

TEST_CASE("box_csv: lines of an image need not be together") {
  const TempDir dir;
  dir.Write("boxes.csv", "b,,,,,\na,1,2,3,4,x\nc,,,,,\nb,5,6,7,8,y\na,9,9,10,10,y\n");
  const auto source = MakeSource("box_csv", {{"path", dir.path("boxes.csv")}});
  CHECK(NamesOf(*source, dir) == Strings{"b", "a", "c"});
  CHECK(RowsOf(*source, 0) == Rows{{1, 5, 6, 7, 8, 0}});
  CHECK(RowsOf(*source, 1) == Rows{{0, 1, 2, 3, 4, 0}, {1, 9, 9, 10, 10, 0}});
  CHECK(RowsOf(*source, 2).empty());
}
