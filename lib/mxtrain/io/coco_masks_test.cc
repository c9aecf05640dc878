// SPDX-License-Identifier: Apache-2.0
// Classes of pixels from a file of COCO: classes, overlaps, crowds, and what is refused. How
// segmentations become pixels is in pixel_runs_test.cc.
#include <doctest/doctest.h>

#include <filesystem>

#include "mxtrain/base/error.h"
#include "tests/support/image_bytes.h"
#include "tests/support/pipeline_data.h"
#include "tests/support/source_error.h"
#include "tests/support/text_checks.h"

namespace mxtrain::test {
namespace {

using Strings = std::vector<std::string>;

// Two images of 6x4 pixels, of which the first, or the one given, has annotations.
class CocoSet {
 public:
  explicit CocoSet(const Strings& annotations, const std::string& image = "") {
    dir_.Write("a.png", Photo(6, 4));
    dir_.Write("b.png", Photo(6, 4));
    const std::string a = image.empty() ? R"({"id": 1, "file_name": "a.png"})" : image;
    dir_.Write("coco.json",
               format(R"({{"annotations": [{}], "images": [{}, {{"id": 2, "file_name": "b.png"}}],
                      "categories": [{{"id": 20, "name": "dog"}}, {{"id": 3, "name": "cat"}}]}})",
                      join(annotations, ", "), a));
  }

  static std::string Photo(int width, int height) {
    Image image;
    image.Resize(height, width, 1);
    return EncodePng(image);
  }
  std::string file() const { return dir_.path("coco.json"); }
  const TempDir& dir() const { return dir_; }
  Kwargs Params(const Kwargs& more = {}) const {
    Kwargs params = {{"path", file()}, {"label", "mask"}};
    params.insert(params.end(), more.begin(), more.end());
    return params;
  }
  std::unique_ptr<Source> Open(const Kwargs& more = {}) const {
    return MakeSource("coco", Params(more));
  }
  // A row of digits for each row of pixels, '-' for no class.
  std::string Mask(int64_t index, const Kwargs& more = {}) const {
    Sample sample;
    Open(more)->Read(index, &sample);
    const Image& classes = sample.labels[0].classes;
    std::string text;
    for (int y = 0; y < classes.height; ++y) {
      for (int x = 0; x < classes.width; ++x) {
        const int k = classes.row(y)[x];
        text += k == kNoClass ? '-' : static_cast<char>('0' + k);
      }
      text += '\n';
    }
    return text;
  }
  // Why the first image cannot be read, with FILE for the file.
  std::string WhyNot() const {
    std::string text = MessageOf([this] { Mask(0); });
    const size_t at = text.find(file());
    return at == std::string::npos ? text : text.replace(at, file().size(), "FILE");
  }

 private:
  TempDir dir_;
};

std::string Annotation(int id, const std::string& segmentation, int category = 3,
                       const std::string& more = "") {
  return format(R"({{"id": {}, "image_id": 1, "category_id": {}, "segmentation": {}{}}})", id,
                category, segmentation, more);
}

const std::string kLeft = "[[0, 0, 4, 0, 4, 4, 0, 4]]", kMiddle = "[[3, 1, 5, 1, 5, 3, 3, 3]]";

}  // namespace

TEST_CASE("coco masks: polygons, counts, and the smaller object on top") {
  const std::string both = "111100\n111220\n111220\n111100\n";
  for (const bool reversed : {false, true}) {
    Strings annotations = {Annotation(7, kLeft), Annotation(8, kMiddle, 20)};
    if (reversed) std::swap(annotations[0], annotations[1]);
    const CocoSet set(annotations);
    const auto source = set.Open();
    CHECK(source->class_names() == Strings{"background", "cat", "dog"});
    CHECK(source->label_fields()[0].kind == FieldKind::kMask);
    CHECK(source->size() == 2);
    CHECK(set.Mask(0) == both);
    CHECK(set.Mask(1) == "000000\n000000\n000000\n000000\n");
    CHECK(source->notes() ==
          Strings{format("{}: 1 of 2 images has no annotations, so that all pixels are background "
                         "(first: {})",
                         set.file(), set.dir().path("b.png"))});
  }
  // The same pixels as counts, of parts, with more in the object.
  for (const char* left :
       {R"({"counts": [0, 16, 8], "size": [4, 6]})", R"({"size": [4, 6], "counts": "0`08"})",
        R"({"size": [4.0, 6], "x": {"counts": [[3]]}, "counts": [0, 10, 0, 6, 8]})",
        "[[0, 0, 4, 0, 4, 2, 0, 2], [0, 2, 4, 2, 4, 4, 0, 4]]",
        "[[0, 0, 3, 0, 3, 4, 0, 4], [1, 0, 4, 0, 4, 4, 1, 4]]"}) {
    CAPTURE(left);
    CHECK(CocoSet({Annotation(7, left), Annotation(8, kMiddle, 20)}).Mask(0) == both);
  }
  // Of equally many pixels the last.
  CHECK(CocoSet({Annotation(1, kMiddle), Annotation(2, kMiddle, 20)}).Mask(0) ==
        "000000\n000220\n000220\n000000\n");
}

TEST_CASE("coco masks: crowds have no class where no object is") {
  const CocoSet set({Annotation(8, kMiddle, 20), Annotation(7, kLeft, 3, R"(, "iscrowd": 1)")});
  CHECK(set.Mask(0) == "----00\n---220\n---220\n----00\n");
}

TEST_CASE("coco masks: which classes there are") {
  const CocoSet set({Annotation(7, kLeft), Annotation(8, kMiddle, 20)});
  CHECK(set.Mask(0, {{"classes", "(dog, background, cat)"}}) == "222211\n222001\n222001\n222211\n");
  // Without background pixels of no object have no class.
  CHECK(set.Mask(0, {{"classes", "(dog, cat)"}}) == "1111--\n11100-\n11100-\n1111--\n");
  Kwargs few = set.Params({{"classes", "(background, cat)"}});
  CheckHas(WhyNoSource("coco", few),
           "annotation 8: the category 'dog' is not one of the 2 classes (background, cat)");
  few.back().second = "(background, cat, cat)";
  CHECK(WhyNoSource("coco", few) == "classes names 'cat' twice");

  // A category of this name is the class.
  const TempDir dir;
  dir.Write("a.png", CocoSet::Photo(6, 4));
  dir.Write("coco.json", format(R"({{"images": [{{"id": 1, "file_name": "a.png"}}],
      "categories": [{{"id": 1, "name": "cat"}}, {{"id": 3, "name": "background"}}],
      "annotations": [{}, {}]}})",
                                Annotation(1, kLeft, 1), Annotation(2, kMiddle, 3)));
  CHECK(MakeSource("coco", {{"path", dir.path("coco.json")}, {"label", "mask"}})->class_names() ==
        Strings{"background", "cat"});

  Strings categories;
  for (int k = 0; k < 255; ++k)
    categories.push_back(format(R"({{"id": {}, "name": "c{}"}})", k, k));
  dir.Write("many.json", format(R"({{"images": [{{"id": 1, "file_name": "a.png"}}],
      "categories": [{}], "annotations": []}})",
                                join(categories, ", ")));
  CHECK(WhyNoSource("coco", {{"path", dir.path("many.json")}, {"label", "mask"}}) ==
        dir.path("many.json") + ": masks have at most 255 classes, not 256");
}

TEST_CASE("coco masks: a bad segmentation is a bad example, which is named") {
  const auto why = [](const std::string& segmentation) {
    const std::string text = CocoSet({Annotation(8, kLeft), Annotation(9, segmentation)}).WhyNot();
    const std::string begin = "FILE: annotation 9: ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  };
  CHECK(why(kMiddle).empty());
  CHECK(why("[[0, 0, 4, 0]]") ==
        "a polygon has 4 numbers; expected x and y of three corners or more");
  CHECK(why("[[0, 0, 4, 0, 4, 4], []]") ==
        "a polygon has 0 numbers; expected x and y of three corners or more");
  CHECK(why("[[0, 0, 4, 0, 4, 4, 1]]") ==
        "a polygon has 7 numbers, which is odd; expected x and y of each corner");
  CHECK(why("[[0, 0, 4, null, 4, 4]]") == "something in a polygon is not a number");
  CHECK(why("[[0, 0, 4, -2e9, 4, 4]]") == "-2000000000 is too large for a coordinate in pixels");
  const std::string form =
      "its segmentation is neither polygons nor {\"counts\": ..., \"size\": [height, width]}";
  for (const char* neither :
       {"[0, 0, 4, 0, 4, 4]", "\"x\"", "5", "{}", R"({"counts": [24]})", R"({"size": [4, 6]})",
        R"({"counts": [24], "size": [4]})", R"({"counts": {"x": 1}, "size": [4, 6]})",
        R"([{"counts": [24]}])", "[[[0, 0, 4, 0, 4, 4]]]", "[[\"0\", 0, 4, 0, 4, 4]]",
        R"({"counts": 24, "size": [4, 6]})"}) {
    CAPTURE(neither);
    CHECK(why(neither) == form);
  }
  for (const char* none : {"null", "[]"}) CHECK(why(none) == "it has no segmentation");
  CHECK(why(R"({"counts": [8, 15], "size": [4, 6]})") ==
        "its counts add up to 23 pixels, but its size is 6x4");
  CHECK(why(R"({"counts": [8, -1, 17], "size": [4, 6]})") ==
        "-1 in counts or size is not a number of pixels");
  CHECK(why(R"({"counts": [8, 1.5, 14.5], "size": [4, 6]})") ==
        "1.5 in counts or size is not a number of pixels");
  CHECK(why(R"({"counts": "0 8", "size": [4, 6]})") ==
        "its counts are damaged: it has ' ', which is not in counts");
  CHECK(why(R"({"counts": [8, 16], "size": [6, 4]})") ==
        "its segmentation is of 4x6 pixels, but the image has 6x4");
  const std::string image = R"({{"id": 1, "file_name": "a.png", "width": {}, "height": 4}})";
  CHECK(CocoSet({Annotation(1, kLeft)}, fmt::format(fmt::runtime(image), 6)).WhyNot().empty());
  CHECK(CocoSet({Annotation(1, kLeft)}, fmt::format(fmt::runtime(image), 12)).WhyNot() ==
        "FILE: image 1 is of 12x4 pixels there, but its file is of 6x4; was it resized after it "
        "was annotated?");
  CHECK(CocoSet({}, fmt::format(fmt::runtime(image), 12)).WhyNot().empty());
}

TEST_CASE("coco masks: what is refused when the file is opened") {
  const CocoSet boxes({R"({"id": 1, "image_id": 1, "category_id": 3, "bbox": [1, 1, 2, 2]})",
                       Annotation(2, "[]", 3, R"(, "bbox": [1, 1, 2, 2])")});
  CHECK(WhyNoSource("coco", boxes.Params()) ==
        boxes.file() +
            ": none of its annotations has a \"segmentation\", of which label = mask makes masks; "
            "with boxes alone, use label = given");
  CHECK(MakeSource("coco", {{"path", boxes.file()}})->label_fields()[0].kind == FieldKind::kBoxes);
  const CocoSet set({Annotation(1, kLeft)});
  for (const char* key : {"mask_classes", "mask_colours", "mask_ignore", "targets_suffix"}) {
    CheckHas(WhyNoSource("coco", set.Params({{key, "x"}})),
             "those of coco have the names in classes");
  }
  CHECK(WhyNoSource("coco", {{"path", set.file()}}) == "");  // a box is that of the polygons
}

TEST_CASE("coco masks: files of masks take the place of segmentations") {
  const CocoSet set({Annotation(1, kLeft)});
  std::filesystem::create_directories(set.dir().path("masks"));
  Image classes;
  classes.Resize(4, 6, 1);
  std::fill(classes.pixels.begin(), classes.pixels.end(), uint8_t{2});
  set.dir().Write("masks/a.png", EncodePng(classes));
  CHECK(set.Mask(0, {{"targets", set.dir().path("masks")}}) == "222222\n222222\n222222\n222222\n");
}

TEST_CASE("coco masks reach batches, and bad ones are counted") {
  const CocoSet set({Annotation(7, kLeft), Annotation(8, kMiddle, 20, R"(, "iscrowd": true)")});
  Runtime runtime = MakeRuntime();
  const std::shared_ptr<const Source> source = set.Open();
  for (const char* cache : {"none", "ram"}) {
    const auto iter =
        NewPipeline(runtime, source, {{"center_crop", {{"", "(2, 4)"}}}},
                    Param({{"batch_size", "2"}, {"mode", "evaluation"}, {"cache", cache}}));
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      DataBatch batch;
      iter->Reset(epoch);
      REQUIRE(iter->Next(&batch));
      CHECK(batch.label[0].ToVector() ==
            std::vector<float>{1, 1, 1, -1, 1, 1, 1, -1, 0, 0, 0, 0, 0, 0, 0, 0});
    }
  }
  const CocoSet bad({Annotation(7, "[[1, 2]]")});
  const auto iter =
      NewPipeline(runtime, bad.Open(), {}, Param({{"batch_size", "2"}, {"mode", "evaluation"}}));
  DataBatch batch;
  REQUIRE(iter->Next(&batch));
  REQUIRE(batch.bad.size() == 1);
  CheckHas(batch.bad[0].reason, "annotation 7: a polygon has 2 numbers");
}

}  // namespace mxtrain::test
