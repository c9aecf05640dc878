// SPDX-License-Identifier: Apache-2.0
#include "app/report/annotation.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::report {
namespace {

io::Image Black(int height, int width, int channels = 1) {
  io::Image image;
  image.Resize(height, width, channels);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  return image;
}

int CountOf(const io::Image& image, const io::Rgb& colour) {
  int count = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    count +=
        std::equal(colour.begin(), colour.end(), image.pixels.begin() + static_cast<int64_t>(i));
  return count;
}

}  // namespace

TEST_CASE(
    "a label enlarges small images for legibility, and flat ones no further than an edge of 4096") {
  const struct {
    int height, width, labelled_height, labelled_width;
  } cases[] = {{200, 300, 200, 300}, {10, 20, 130, 260},   {10, 1000, 40, 4000},
               {1, 20000, 1, 20000}, {20000, 1, 20000, 1}, {1, 1, 128, 128}};
  for (const auto& c : cases) {
    CAPTURE(c.height);
    CAPTURE(c.width);
    io::Image image = Black(c.height, c.width);
    DrawLabel("cat 0.93", &image);
    CHECK(image.height == c.labelled_height);
    CHECK(image.width == c.labelled_width);
    CHECK(image.channels == 3);
    CHECK(*std::max_element(image.pixels.begin(), image.pixels.end()) > 0);
  }
  io::Image none;
  CHECK_THROWS_WITH_AS(DrawLabel("cat", &none), doctest::Contains("empty image"), Error);
}

TEST_CASE("labels have letters beyond ASCII, and long ones stay legible") {
  const auto labelled = [](const std::string& text) {
    io::Image image = Black(200, 300, 3);
    DrawLabel(text, &image);
    return image.pixels;
  };
  CHECK(labelled("żółw") != labelled("????"));
  CHECK(labelled("żółw") != labelled("zolw"));
  CHECK(labelled("قبعة") != labelled("????"));
  // Shortened, so that its end differs no more than its beginning.
  CHECK(labelled(std::string(200, 'x') + "a") != labelled(std::string(200, 'x') + "b"));
}

TEST_CASE("boxes of small images are drawn on the enlarged one, with lines of whole pixels") {
  io::Image image = Black(64, 64, 3);
  const io::Rgb red{255, 0, 0};
  DrawBoxes({{8, 8, 40, 32, red, ""}}, &image);
  CHECK(image.height == 128);
  // 64 by 48 pixels, one pixel wide.
  CHECK(CountOf(image, red) == 2 * 64 + 2 * 46);
  for (const int x : {16, 79}) CHECK(image.row(40)[3 * x] == 255);
  for (const int x : {15, 17, 78, 80}) CHECK(image.row(40)[3 * x] == 0);
}

TEST_CASE("texts of boxes hide no other text") {
  const io::Rgb red{255, 0, 0}, blue{0, 0, 255};
  const auto drawn = [&](const std::string& second, double top) {
    io::Image image = Black(200, 200, 3);
    DrawBoxes({{20, 60, 120, 160, red, "first"}, {20, top, 120, top + 100, blue, second}}, &image);
    return image;
  };
  // The band of the first, above its box, is whole.
  const auto band = [&](const io::Image& image) {
    int count = 0;
    for (int y = 0; y < 60; ++y) {
      for (int x = 0; x < image.width; ++x)
        count += std::equal(red.begin(), red.end(), image.row(y) + 3 * x);
    }
    return count;
  };
  CHECK(band(drawn("", 61)) > 100);
  CHECK(band(drawn("second", 61)) == band(drawn("", 61)));
  CHECK(CountOf(drawn("second", 61), blue) > CountOf(drawn("", 61), blue));
  // Many at one place: those without a place have no text.
  std::vector<LabelledBox> many(50, {20, 60, 120, 160, red, "same"});
  io::Image image = Black(200, 200, 3), four = Black(200, 200, 3);
  DrawBoxes(many, &image);
  many.resize(4);
  DrawBoxes(many, &four);
  CHECK(image.pixels == four.pixels);
}

TEST_CASE("a legend stands in the lower left corner, in order, within half the height") {
  const io::Rgb red{255, 0, 0}, blue{0, 0, 255};
  const auto has = [](const io::Image& image, int y, const io::Rgb& colour) {
    return std::equal(colour.begin(), colour.end(), image.row(y));
  };
  io::Image image = Black(200, 200, 3);
  DrawLegend({{red, "road"}, {blue, "sky"}}, &image);
  CHECK(has(image, 199, blue));
  int first = 0;  // row of the upper band
  while (!has(image, first, red)) ++first;
  CHECK(first > 160);
  CHECK(has(image, first + (200 - first) / 2, blue));
  CHECK(has(image, first + (200 - first) / 2 - 1, red));
  io::Image many = Black(200, 200, 3);
  DrawLegend(std::vector<LegendEntry>(50, {red, "same"}), &many);
  CHECK_FALSE(has(many, 99, red));
  CHECK(has(many, 120, red));
  CHECK(has(many, 199, red));
  io::Image none;
  CHECK_THROWS_WITH_AS(DrawLegend({{red, "road"}}, &none), doctest::Contains("empty image"), Error);
}

}  // namespace mxtrain::report
