// SPDX-License-Identifier: Apache-2.0
// What the sources of images with objects in them refuse, with file and line.
#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/source_error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

// What is said of a file with this text; the file's path is FILE in it.
class Refused {
 public:
  Refused(std::string kind, std::string name) : kind_(std::move(kind)), name_(std::move(name)) {
    Image image;
    image.Resize(4, 4, 1);
    dir_.Write("a.png", EncodePng(image));
  }
  const TempDir& dir() const { return dir_; }
  std::string operator()(const std::string& text, const Kwargs& more = {}) const {
    dir_.Write(name_, text);
    const bool folder = kind_ == "voc" || kind_ == "yolo";
    Kwargs kwargs = {{"path", folder ? dir_.path() : dir_.path(name_)}};
    kwargs.insert(kwargs.end(), more.begin(), more.end());
    std::string why = WhyNoSource(kind_, kwargs);
    for (const auto& [path, word] : {std::pair(dir_.path(name_), "FILE"), {dir_.path(), "DIR"}}) {
      for (size_t at; (at = why.find(path)) != std::string::npos;)
        why.replace(at, path.size(), word);
    }
    return why;
  }

 private:
  const TempDir dir_;
  const std::string kind_, name_;
};

}  // namespace

TEST_CASE("voc refuses damaged annotations") {
  const Refused why("voc", "a.xml");
  const std::string box =
      "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>";
  const auto object = [](const std::string& text) {
    return "<annotation>\n<object>" + text + "</object></annotation>";
  };
  CheckHas(why("<annotation>\n<object>"), "FILE:2: not XML: ");
  // UTF-16, converted by pugixml to more bytes: lines were counted beyond the file's end.
  CheckHas(why(std::string("<\0", 2) + std::string(400, '\xff')), "FILE: not XML: ");
  CHECK(why("<html/>") == "FILE: expected <annotation>, as in Pascal VOC, got <html>");
  CHECK(why(object(box)) == "FILE: object 1 has no <name>");
  CHECK(why(object("<name>cat</name>")) == "FILE: object 1 has no <bndbox>");
  CHECK(why(object("<name>cat</name><bndbox><xmin>1</xmin><ymin>x</ymin></bndbox>")) ==
        "FILE: object 1: ymin is 'x', expected a number of pixels");
  CHECK(why(object("<name>cat</name>" + box), {{"classes", "(dog, cats)"}}) ==
        "FILE: the class 'cat' is not one of the 2 classes (dog, cats); did you mean 'cats'?");
  why.dir().Write("set.txt", "b\n");
  CHECK(why(object("<name>cat</name>" + box), {{"set", why.dir().path("set.txt")}}) ==
        "no image in DIR has an annotation of its name in DIR and is in DIR/set.txt");
  const TempDir none;
  none.Write("a.png", "");
  CHECK(WhyNoSource("voc", {{"path", none.path()}}) ==
        none.path() +
            ": no XML files there, in a folder 'annotations' in it or beside it: name their "
            "folder as annotations");
  CHECK(WhyNoSource("voc", {{"path", none.path()}, {"annotations", "/none"}}) ==
        "/none is no folder");
}

TEST_CASE("yolo refuses lines of another form") {
  const Refused why("yolo", "a.txt");
  CheckHas(
      why("0 0.5 0.5 1 1\n0 320 240 64 48\n"),
      ":2: '320' is not a share of the image's size, which goes from 0 to 1; are these pixels?");
  CheckHas(why("0 0.5 0.5 1 -1.01\n"), ":1: '-1.01' is not a share");
  const std::string expected =
      ", expected 5 (class, x, y, width, height), or a class and x, y of each corner of a polygon";
  CHECK(why("0 0.5 0.5 1 1\n\n0 0.5 0.5 1\n") == "FILE:3: 4 numbers" + expected);
  CHECK(why("0 0.5 0.5 1 1 0.9\n") ==
        "FILE:1: 6 numbers" + expected +
            "; the sixth looks like a score, as in what a detector found, which are no labels");
  CHECK(why("0 0.5 0.5 1 1 0.9 0.1 1\n") == "FILE:1: 8 numbers" + expected);
  CHECK(why("7\n") == "FILE:1: 1 number" + expected);
  CHECK(why("0 0.5 0,5 1 1\n") == "FILE:1: '0,5' is not a number");
  CHECK(why("0 0.5 nan 1 1\n") == "FILE:1: 'nan' is not a number");
  CHECK(why("cat 0.5 0.5 1 1\n") ==
        "FILE:1: 'cat' is not a number; the first of a line is the number of its class");
  for (const char* number : {"-1", "0.5"}) {
    CHECK(why(format("{} 0.5 0.5 1 1\n", number)) ==
          format("FILE:1: '{}' is not a class number; these are 0, 1, ...", number));
  }
  CHECK(why("10000 0.5 0.5 1 1\n") ==
        "FILE:1: the class 10000 makes more than 10000 classes; name them if there are so many");
  CHECK(why("0 0 0 1 1\n2 0.5 0.5 1 1\n", {{"classes", "(cat, dog)"}}) ==
        "FILE:2: the class 2 has no name; the names are cat, dog, counted from 0");
}

TEST_CASE("what is wrong with several files is told at once") {
  for (const bool xml : {false, true}) {
    CAPTURE(xml);
    const TempDir dir;
    for (int i = 0; i < 8; ++i) {
      dir.Write(format("{}.png", i), "");
      const bool good = i == 0 || i == 2;
      if (xml) {
        dir.Write(format("{}.xml", i), good ? "<annotation/>" : "<html/>");
      } else {
        dir.Write(format("{}.txt", i), good ? "0 0.5 0.5 1 1\n" : "cat\n");
      }
    }
    const std::string why = WhyNoSource(xml ? "voc" : "yolo", {{"path", dir.path()}});
    const auto of = [&](int i) { return dir.path(format("{}.{}", i, xml ? "xml" : "txt")); };
    CheckHas(why, "; 5 more files are wrong: " + of(3));
    for (const int i : {1, 4, 5, 6}) CheckHas(why, of(i));
    CHECK_FALSE(Says(why, of(7)));
  }
}

TEST_CASE("yolo refuses wrong names and missing files") {
  const Refused why("yolo", "a.txt");
  const std::string object = "1 0.5 0.5 1 1\n";
  why.dir().Write("obj.names", "cat\n");
  CHECK(why(object) ==
        "FILE:1: the class 1 has no name; the names in DIR/obj.names are cat, counted from 0");
  why.dir().Write("obj.names", "cat\ndog\n");
  CHECK(why(object, {{"classes", "(cow, cat)"}}) ==
        "FILE:1: the class 1 ('dog' by DIR/obj.names) is not one of the 2 classes (cow, cat)");
  CHECK(why("0 0.5 0.5 1 1\n", {{"classes", "(cow, cat)"}}).empty());
  why.dir().Write("obj.names", "cat\n\ndog\n");
  CHECK(why(object) ==
        "DIR/obj.names:3: the line before it is empty, but each line names a class, "
        "in the order of their numbers");
  why.dir().Write("obj.names", "cat\ncat\n");
  CHECK(why(object) == "DIR/obj.names:2: a second class 'cat'");
  CHECK(why(object, {{"annotations", "/none"}}) == "/none is no folder");
  why.dir().MakeFolder("other");
  CHECK(why(object, {{"annotations", why.dir().path("other")}}) ==
        "no image in DIR has a text file of its name in DIR/other: name the folder of these as "
        "annotations");
  const Refused none("yolo", "b.txt");
  CHECK(none(object) ==
        "no image in DIR has a text file of its name, in a folder 'labels' beside 'images' or "
        "beside the image: name the folder of these as annotations");
  const TempDir dir;
  dir.Write("empty.txt", "\n");
  CHECK(WhyNoSource("yolo", {{"path", dir.path("empty.txt")}}) ==
        dir.path("empty.txt") + " names no images");
  CheckHas(WhyNoSource("yolo", {{"path", dir.path("none.txt")}}), dir.path("none.txt"));
}

TEST_CASE("coco refuses what is not JSON, or not of its form") {
  const Refused why("coco", "boxes.json");
  CHECK(why("{\"images\": [],\n\n \"annotations\": [}") ==
        "FILE:3: not JSON: syntax error while parsing value - unexpected '}'; expected '[', '{', "
        "or a literal");
  CHECK(why("{\"images\": [{\"id\": 1") ==
        "FILE:1: not JSON: syntax error while parsing object - unexpected end of input; expected "
        "'}'");
  CheckHas(why("{\"images\": [{\"id\": 1e999"), "FILE:1: not JSON: ");
  CheckHas(why("{\"images\": \"\xff\""), "FILE:1: not JSON: ");
  CHECK(why("[1]") ==
        "FILE: expected a JSON object of images, annotations and categories, as in a "
        "file of COCO");
  CHECK(why("{\"x\": " + std::string(100'000, '[')) == "FILE: more than 64 levels of brackets");
  const std::string lacks = "; expected images, annotations and categories, as in a file of COCO";
  CHECK(why("{}") == "FILE: it has no \"images\"" + lacks);
  CHECK(why(R"({"images": []})") == "FILE: it has no \"annotations\"" + lacks);
  CHECK(why(R"({"images": [], "annotations": []})") == "FILE: it has no \"categories\"" + lacks);
  CHECK(why(R"({"images": [], "images": []})") == "FILE: it has \"images\" twice");
  CHECK(why(R"({"images": {"a": 1}})") == "FILE: \"images\" is not an array of objects");
  CHECK(why(R"({"annotations": 1})") == "FILE: \"annotations\" is not an array of objects");
  CHECK(why(R"({"categories": ["cat"]})") == "FILE: \"categories\" is not an array of objects");
  CHECK(why(R"({"images": [], "annotations": [], "categories": []})") ==
        "FILE: it names no images");
}

TEST_CASE("coco refuses images, categories and annotations that do not fit") {
  const Refused why("coco", "boxes.json");
  const auto says = [&why](const std::string& annotation,
                           const std::string& image = R"({"id": 1, "file_name": "a.png"})",
                           const std::string& category = R"({"id": 5, "name": "cat"})",
                           const Kwargs& more = {}) {
    return why(format(R"({{"annotations": [{}], "images": [{}], "categories": [{}]}})", annotation,
                      image, category),
               more);
  };
  const std::string one = R"({"id": 9, "image_id": 1, "category_id": 5, "bbox": [0, 0, 1, 1]})";
  CHECK(says(one).empty());
  CHECK(says(R"({"id": 9, "image_id": 2, "category_id": 5, "bbox": [0, 0, 1, 1]})") ==
        "FILE: annotation 9 is of the image 2, which is not in the file");
  CHECK(says(R"({"id": 9, "image_id": 1, "category_id": "x", "bbox": [0, 0, 1, 1]})") ==
        "FILE: annotation 9 is of the category x, which is not in the file");
  CHECK(says(R"({"image_id": 1, "bbox": [0, 0, 1, 1]})") ==
        "FILE: annotation number 1, counted from 1, has no \"category_id\"");
  CHECK(says(one + R"(, {"id": "y", "category_id": 5, "image_id": null})") ==
        "FILE: annotation y has no \"image_id\"");
  for (const char* box : {"[1, 2, 3]", "[1, 2, 3, 4, 5]", "[1, 2, \"x\", 4]"}) {
    CHECK(says(format(R"({{"id": 9, "image_id": 1, "category_id": 5, "bbox": {}}})", box)) ==
          "FILE: annotation 9: its \"bbox\" is not four numbers [x, y, width, height]");
  }
  CHECK(says(R"({"id": 9, "image_id": 1, "category_id": 5, "bbox": [1, 2, 3, 1e12]})") ==
        "FILE: annotation 9: 1000000000002 is too large for the edge of a box in pixels");
  for (const char* mask : {"[]", "[[]]", "[[1]]", R"({"counts": [1, 2], "size": [3, 4]})"}) {
    CHECK(says(format(R"({{"id": 9, "image_id": 1, "category_id": 5, "segmentation": {}}})",
                      mask)) == "FILE: annotation 9 has neither a \"bbox\" nor polygons");
  }
  const std::string image = R"({"id": 1, "file_name": "a.png"})";
  CHECK(says(one, R"({"id": 1, "name": "a.png"})") == "FILE: image 1 has no \"file_name\"");
  CHECK(says(one, image + R"(, {"file_name": "b.png"})") ==
        "FILE: image number 2, counted from 1, has no \"id\"");
  CHECK(says(one, image + ", " + image) == "FILE: two images have the id 1");
  const std::string cat = R"({"id": 5, "name": "cat"})";
  CHECK(says(one, image, R"({"id": 5})") == "FILE: category 5 has no \"name\"");
  CHECK(says(one, image, cat + R"(, {"id": 6, "name": "cat"})") ==
        "FILE: two categories have the name 'cat', of the ids 5 and 6");
  CHECK(says(one, image, cat + R"(, {"id": "5", "name": "dog"})") ==
        "FILE: two categories have the id 5");
  CHECK(says(one, image, cat, {{"classes", "(cats, dog)"}}) ==
        "FILE: annotation 9: the category 'cat' is not one of the 2 classes (cats, dog); did you "
        "mean 'cats'?");
}

TEST_CASE("box_csv refuses tables without its columns") {
  const Refused why("box_csv", "boxes.csv");
  CHECK(why("name,x1,y1,x2,y2\na,1,2,3,4\n") ==
        "FILE:1: no column of images: expected one named image, file, filename, path, image_path "
        "or ImageID; the columns are name, x1, y1, x2, y2");
  CHECK(why("\nfile,x1,y1,x2,y2\na,1,2,3,4\n") ==
        "FILE:2: no column of classes: expected one named class, label, name, class_name, category "
        "or LabelName; the columns are file, x1, y1, x2, y2");
  CHECK(why("file,class,x1,y1,x2,y\na,b,1,2,3,4\n") ==
        "FILE:1: no columns of boxes: expected xmin, ymin, xmax, ymax, or x1, y1, x2, y2, or left, "
        "top, right, bottom, or x, y, w, h; the columns are file, class, x1, y1, x2, y");
  CHECK(why("file,class,x1,y1,x2,y2,X1\na,b,1,2,3,4,5\n") == "FILE:1: there are two columns 'x1'");
  CHECK(why("file,class,x1,y1,x2,y2\n") == "FILE holds no line with an image and a box");
  CHECK(why("") == "FILE holds no line with an image and a box");
}

TEST_CASE("box_csv refuses cells that say no box") {
  const Refused why("box_csv", "boxes.csv");
  const std::string header = "image,x1,y1,x2,y2,class,difficult\na,1,2,3,4,b,0\n";
  CHECK(why(header + "a,1,2,3,4,b\n") == "FILE:3: 6 columns, but the lines before have 7");
  CHECK(why(header + "a,1,x,3,4,b,0\n") == "FILE:3: column 'y1': 'x' is not a number");
  CHECK(why(header + "a,1,2,3,,b,0\n") == "FILE:3: column 'y2': the cell is empty");
  CHECK(why(header + "a,1,2,3,inf,b,0\n") ==
        "FILE:3: column 'y2': 'inf' is too large for the edge of a box in pixels");
  CHECK(why(header + "a,1,2,3,4,,0\n") == "FILE:3: column 'class': the cell is empty");
  CHECK(why(header + ",1,2,3,4,b,0\n") == "FILE:3: column 'image': the cell is empty");
  CHECK(why(header + "a,1,2,3,4,b,maybe\n") ==
        "FILE:3: column 'difficult': 'maybe' is not a number");
  CHECK(why(header + "\"a,1,2\n") == "FILE:3: a quote is opened and never closed");
  CHECK(why("a,1,2,3,4,b\na,1,2,3,4;5,b\n") ==
        "FILE:2: column 4 (counted from 0): '4;5' is not a number");
  CHECK(why(header, {{"classes", "(cat, dog)"}}) ==
        "FILE:2: column 'class': the class 'b' is not one of the 2 classes (cat, dog)");
  CHECK(why("image,x1,y1,x2,y2,class\na,0.1,0.2,0.3,1,b\n") ==
        "FILE: no box goes beyond 1, so they look like shares of the image's size, but pixels are "
        "expected: multiply x by the width and y by the height of the image");
}
