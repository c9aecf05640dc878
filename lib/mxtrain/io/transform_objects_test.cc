// SPDX-License-Identifier: Apache-2.0
// iou_crop and zoom_out: which parts of an image they take, and where its objects are then.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/internal/box_labels.h"
#include "tests/support/error_message.h"
#include "tests/support/pipeline_data.h"

namespace mxtrain::test {
namespace {

using ObjectRows = std::vector<float>;

// Each pixel tells where it is.
Image Places(int height, int width) {
  Image image;
  image.Resize(height, width, 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.row(y)[3 * x] = static_cast<uint8_t>(x);
      image.row(y)[3 * x + 1] = static_cast<uint8_t>(y);
      image.row(y)[3 * x + 2] = 200;
    }
  }
  return image;
}

struct Taken {
  Image image;
  ImageOrigin origin;
  Box box;  // the part of the image, by its pixels; of zoom_out, by its map
};

Taken Take(const std::vector<TransformSpec>& chain, const Image& from, const ObjectRows& rows,
           int64_t index) {
  Taken taken{{}, ImageOrigin(from.height, from.width), {}};
  Image scratch;
  const Augmenter augmenter(chain, 3);
  ImagePart part{/*recolours=*/true, &taken.origin};
  part.objects = rows;
  part.columns = kBoxColumns;
  const auto steps = augmenter.Begin(from.height, from.width, RandomStream(3, 0, index), 0,
                                     augmenter.size(), part);
  augmenter.ToImage(steps, from, {from.height, from.width, {0, 0, from.height, from.width}, 1},
                    &taken.image, &scratch);
  taken.box = {taken.image.row(0)[1], taken.image.row(0)[0], taken.image.height, taken.image.width};
  return taken;
}

double Iou(const Box& box, const float* corners) {
  const double w = std::min<double>(box.x + box.width, corners[2]) -
                   std::max<double>(box.x, corners[0]),
               h = std::min<double>(box.y + box.height, corners[3]) -
                   std::max<double>(box.y, corners[1]);
  if (w <= 0 || h <= 0) return 0;
  return w * h /
         (double(box.width) * box.height + (corners[2] - corners[0]) * (corners[3] - corners[1]) -
          w * h);
}

// Whether the crop has the center of an object of at least this overlap.
bool IsAllowed(const Box& box, const ObjectRows& rows, double least) {
  for (size_t at = 0; at < rows.size(); at += kBoxColumns) {
    const float* corners = &rows[at + 1];
    const double x = (corners[0] + corners[2]) / 2, y = (corners[1] + corners[3]) / 2;
    if (x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height &&
        Iou(box, corners) >= least)
      return true;
  }
  return false;
}

constexpr int kPlacesHeight = 120, kPlacesWidth = 160;
const ObjectRows kTwoObjects = {1, 20, 30, 70, 90, 0, 0, 90, 10, 150, 110, 0};

TEST_CASE("iou_crop takes parts that an object fills enough of") {
  const Image image = Places(kPlacesHeight, kPlacesWidth);
  for (const double least : {0.0, 0.1, 0.3, 0.5, 0.7}) {
    CAPTURE(least);
    std::set<std::pair<int, int>> sizes;
    for (int64_t index = 0; index < 60; ++index) {
      const Taken taken =
          Take({{"iou_crop", {{"", format("({},)", least)}}}}, image, kTwoObjects, index);
      const Box& box = taken.box;
      CHECK(IsAllowed(box, kTwoObjects, least));
      CHECK(box.width >= static_cast<int>(0.3 * kPlacesWidth));
      CHECK(box.height >= static_cast<int>(0.3 * kPlacesHeight));
      const double aspect = double(box.width) / box.height;
      CHECK((aspect >= 0.5 && aspect <= 2));
      // All pixels are those of that part, and points move alike.
      CHECK(taken.image.row(box.height - 1)[3 * box.width - 3] == box.x + box.width - 1);
      CHECK(taken.image.row(box.height - 1)[3 * box.width - 2] == box.y + box.height - 1);
      const Point corner = taken.origin.map()({double(box.x), double(box.y)});
      CHECK((corner.x == 0 && corner.y == 0));
      sizes.emplace(box.height, box.width);
    }
    CHECK(sizes.size() > 20);
  }
}

TEST_CASE("iou_crop: bounds, and which objects count") {
  const Image image = Places(kPlacesHeight, kPlacesWidth);
  const auto is_whole = [&](const Kwargs& kwargs, const ObjectRows& rows, int64_t index = 0) {
    const Taken taken = Take({{"iou_crop", kwargs}}, image, rows, index);
    return taken.box.height == kPlacesHeight && taken.box.width == kPlacesWidth;
  };
  CHECK_FALSE(is_whole({{"", "(0,)"}}, kTwoObjects));
  CHECK(is_whole({{"", "(1,)"}}, kTwoObjects));
  CHECK(is_whole({{"", "(0,)"}}, {}));
  CHECK(is_whole({{"", "(0,)"}}, {1, 20, 30, 70, 90, float{kDifficultBox}}));
  CHECK(is_whole({{"", "(0,)"}}, {1, 20, 30, 70, 90, float{kCrowdBox}}));
  CHECK(is_whole({{"", "(0.9,)"}, {"side", "(0.3, 0.4)"}}, kTwoObjects));  // no such crop
  int whole = 0;
  for (int64_t index = 0; index < 200; ++index) whole += is_whole({}, kTwoObjects, index) ? 1 : 0;
  CHECK(whole > 10);  // about one in seven, and where the others are not found
  CHECK(whole < 80);
  for (int64_t index = 0; index < 20; ++index) {
    const Box box =
        Take({{"iou_crop", {{"", "(0,)"}, {"side", "(0.5, 0.6)"}}}}, image, kTwoObjects, index).box;
    CHECK((box.width >= 80 && box.width <= 96));
    CHECK((box.height >= 60 && box.height <= 72));
  }
}

TEST_CASE("iou_crop sees objects where earlier transforms have moved them") {
  const Image image = Places(kPlacesHeight, kPlacesWidth);
  const ObjectRows one = {1, 10, 20, 50, 60, 0};
  for (int64_t index = 0; index < 20; ++index) {
    const Taken taken =
        Take({{"flip", {{"p", "1"}}}, {"iou_crop", {{"", "(0.3,)"}}}}, image, one, index);
    const Point low = taken.origin.map()({50, 20}), high = taken.origin.map()({10, 60});
    const float corners[4] = {static_cast<float>(low.x), static_cast<float>(low.y),
                              static_cast<float>(high.x), static_cast<float>(high.y)};
    CHECK(Iou({0, 0, taken.image.height, taken.image.width}, corners) >= 0.3);
  }
}

TEST_CASE("iou_crop draws one number, whatever the objects") {
  const Image image = Places(kPlacesHeight, kPlacesWidth);
  const std::vector<TransformSpec> chain = {{"iou_crop", {{"", "(0.3,)"}}}, {"flip", {}}};
  for (int64_t index = 0; index < 10; ++index) {
    const bool with = Take(chain, image, kTwoObjects, index).origin.map().xx < 0,
               without = Take(chain, image, {}, index).origin.map().xx < 0;
    CHECK(with == without);
  }
}

TEST_CASE("zoom_out puts the image into a larger one") {
  const Image image = Places(30, 50);
  int larger = 0;
  double most = 1;
  for (int64_t index = 0; index < 80; ++index) {
    const Taken taken = Take({{"zoom_out", {{"fill", "7"}}}}, image, {}, index);
    const double factor = double(taken.image.width) / 50;
    if (taken.image.height == 30 && taken.image.width == 50) continue;
    ++larger;
    most = std::max(most, factor);
    CHECK(taken.image.height == doctest::Approx(30 * factor).epsilon(0.05));
    CHECK(factor <= 4);
    const Point at = taken.origin.map()({0, 0});
    const int x = static_cast<int>(at.x), y = static_cast<int>(at.y);
    CHECK((x >= 0 && y >= 0 && x + 50 <= taken.image.width && y + 30 <= taken.image.height));
    CHECK(taken.image.row(y)[3 * x + 2] == 200);
    CHECK(taken.image.row(y + 29)[3 * (x + 49)] == 49);
    int filled = 0;
    for (int row = 0; row < taken.image.height; ++row) {
      for (int column = 0; column < taken.image.width; ++column)
        filled += taken.image.row(row)[3 * column + 2] == 7 ? 1 : 0;
    }
    CHECK(filled == taken.image.height * taken.image.width - 30 * 50);
  }
  CHECK((larger > 25 && larger < 55));
  CHECK(most > 3);
}

TEST_CASE("iou_crop and zoom_out: what they do not take") {
  const auto message = [](const std::string& name, const Kwargs& kwargs) {
    return MessageOf([&] { Augmenter({{name, kwargs}}, 3); });
  };
  CHECK(message("iou_crop", {{"side", "(0.5, 1.5)"}}) ==
        "iou_crop: side = (0.5, 1.5): expected two numbers, minimum and maximum, within 0.01 .. 1");
  CHECK(message("iou_crop", {{"overlap", "()"}}) ==
        "iou_crop: overlap = (): expected one or more numbers");
  CHECK(Says(message("iou_crop", {{"overlap", "(2,)"}}), "iou_crop: overlap = "));
  CHECK(Says(message("iou_crop", {{"aspect", "(2, 0.5)"}}), "iou_crop: aspect = "));
  CHECK(Says(message("zoom_out", {{"side", "(0.5, 2)"}}), "zoom_out: side = "));
  CHECK(Says(MessageOf([] {
               Augmenter({{"zoom_out", {}}}, 3).RequireDeep();
             }),
             "the transform zoom_out works on 8 bits"));
  CHECK(EvaluationTransforms({{"iou_crop", {}}, {"zoom_out", {}}}).empty());
  const TempDir dir;
  WriteImages(dir, 4);
  CHECK(MessageOf([&] {
          Runtime runtime = MakeRuntime();
          NewPipeline(runtime, Folder(dir), {{"iou_crop", {}}, {"resize", {{"", "(8, 8)"}}}},
                      Param({{"batch_size", "2"}}));
        }) ==
        "the transform iou_crop looks where the objects of an image are: it needs data with one "
        "image and boxes; remove it");
}

}  // namespace
}  // namespace mxtrain::test
