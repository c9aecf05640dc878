// SPDX-License-Identifier: Apache-2.0
// Boxes move with their image.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/internal/box_labels.h"
#include "tests/support/error_message.h"
#include "tests/support/pipeline_data.h"

namespace mxtrain::test {
namespace {

using RowNumbers = std::vector<float>;
using Chain = std::vector<TransformSpec>;

FieldSpec Boxes(int64_t most, int64_t columns = kBoxColumns) {
  return {"label", FieldKind::kBoxes, TShape{most, columns}};
}

RowNumbers Moved(const RowNumbers& rows, const ImageOrigin& origin, int64_t most,
                 int64_t columns = 6) {
  RowNumbers to(static_cast<size_t>(most * kBoxColumns), 77);
  REQUIRE_FALSE(WriteBoxes(Boxes(most, columns), rows, origin, {most, kBoxColumns}, to.data()));
  return to;
}

// Crosses of the image: the smallest rectangle around pixels that are mostly white.
struct Extent {
  double left = 1e9, top = 1e9, right = -1, bottom = -1;
};
Extent WhiteOf(const Image& image) {
  Extent extent;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      if (image.row(y)[x] < 128) continue;
      extent.left = std::min<double>(extent.left, x), extent.top = std::min<double>(extent.top, y);
      extent.right = std::max<double>(extent.right, x + 1);
      extent.bottom = std::max<double>(extent.bottom, y + 1);
    }
  }
  return extent;
}

}  // namespace

TEST_CASE("boxes that are cut, dropped and no longer learnt") {
  ImageOrigin origin(100, 200);
  CHECK(Moved({2, 10, 20, 50, 60, 0}, origin, 2) ==
        RowNumbers{2, 10, 20, 50, 60, 0, -1, -1, -1, -1, -1, -1});
  // Beyond the edges of the file nothing is seen.
  CHECK(Moved({0, -10, 20, 50, 120, 0}, origin, 1) == RowNumbers{0, 0, 20, 50, 100, 0});
  // Half as large, then 60 columns from 20 on.
  origin.Moves({0.5, 0, 0, 0, 0.5, 0});
  origin.Moves(PointMap::Shift(-20, 0));
  origin.EndsAt(50, 60);
  CHECK(Moved({1, 60, 20, 80, 40, 0}, origin, 1) == RowNumbers{1, 10, 10, 20, 20, 0});
  CHECK(Moved({1, 20, 20, 80, 40, 0}, origin, 1) == RowNumbers{1, 0, 10, 20, 20, 0});  // two thirds
  CHECK(Moved({1, 0, 20, 48, 40, 0}, origin, 1) ==
        RowNumbers{1, 0, 10, 4, 20, float{kDifficultBox}});
  CHECK(Moved({1, 0, 20, 48, 40, 2}, origin, 1) == RowNumbers{1, 0, 10, 4, 20, float{kCrowdBox}});
  CHECK(Moved({1, 60, 20, 61, 40, 0}, origin, 1) ==
        RowNumbers{1, 10, 10, 10.5f, 20, float{kDifficultBox}});
  CHECK(Moved({1, 0, 20, 38, 40, 0, 1, 60, 20, 80, 40, 0}, origin, 2) ==
        RowNumbers{1, 10, 10, 20, 20, 0, -1, -1, -1, -1, -1, -1});
  // No boxes: corners exchanged, no area, not a number. Further columns are skipped.
  const float nan = std::nanf("");
  CHECK(Moved({1, 80, 20, 60, 40, 0, 1, 60, 40, 80, 40, 0, 1, nan, 20, 80, 40, 0}, origin, 3) ==
        RowNumbers(18, -1));
  CHECK(Moved({1, 60, 20, 80, 40, 0, 123}, origin, 1, 7) == RowNumbers{1, 10, 10, 20, 20, 0});

  RowNumbers to(6);
  CHECK(WriteBoxes(Boxes(1), RowNumbers(7), origin, {1, kBoxColumns}, to.data())->reason ==
        "'label' has 7 numbers, which are no boxes of 6 numbers");
  CHECK(WriteBoxes(Boxes(1), RowNumbers(12), origin, {1, kBoxColumns}, to.data())->reason ==
        "'label' has 2 boxes, more than the 1 of a batch");
  CHECK(Says(MessageOf([] { CheckBoxSpec(Boxes(3, 5)); }), "the label 'label' has boxes of shape"));
}

TEST_CASE("boxes are where the pixels of their objects are, whatever the chain") {
  constexpr int kHeight = 90, kWidth = 120;
  const std::vector<Chain> chains = {
      {},
      {{"flip", {{"p", "1"}}}},
      {{"center_crop", {{"", "64"}}}},
      {{"random_crop", {{"", "(60, 44)"}, {"pad", "20"}}}},
      {{"resize", {{"", "(48, 60)"}}}},
      {{"resize", {{"", "140"}}}},
      {{"zoom_out", {{"", "1, 2"}, {"p", "1"}}}, {"resize", {{"", "(150, 160)"}}}},
      {{"random_resized_crop", {{"size", "(64, 80)"}, {"area", "(0.3, 1)"}}}},
      {{"scale", {{"", "0.7, 1.4"}}},
       {"random_crop", {{"", "64"}, {"pad", "10"}}},
       {"flip", {}},
       {"resize", {{"", "90"}}}}};
  int compared = 0;
  for (size_t c = 0; c < chains.size(); ++c) {
    for (int64_t index = 0; index < 20; ++index) {
      const int left = 10 + static_cast<int>(index * 4 % 50), top = 8 + static_cast<int>(index * 3),
                right = left + 18 + static_cast<int>(index), bottom = std::min(top + 24, kHeight);
      Image image;
      image.Resize(kHeight, kWidth, 1);
      std::ranges::fill(image.pixels, uint8_t{0});
      for (int y = top; y < bottom; ++y) std::fill(image.row(y) + left, image.row(y) + right, 255);
      const Augmenter augmenter(chains[c], 1);
      ImageOrigin origin(kHeight, kWidth);
      Image moved, scratch;
      const auto steps = augmenter.Begin(kHeight, kWidth, RandomStream(5, 0, index), 0,
                                         augmenter.size(), {/*recolours=*/false, &origin});
      augmenter.ToImage(steps, image, {kHeight, kWidth, {0, 0, kHeight, kWidth}, 1}, &moved,
                        &scratch);
      const RowNumbers row =
          Moved({4, float(left), float(top), float(right), float(bottom), 0}, origin, 1);
      const Extent white = WhiteOf(moved);
      CAPTURE(c);
      CAPTURE(index);
      if (white.right < 0) {
        CHECK((row[0] < 0 || BoxRow(row.data()).IsFor(kDifficultBox) || row[3] - row[1] < 2 ||
               row[4] - row[2] < 2));
        continue;
      }
      ++compared;
      REQUIRE(row[0] == 4);
      CHECK(std::abs(row[1] - white.left) < 1.2);
      CHECK(std::abs(row[2] - white.top) < 1.2);
      CHECK(std::abs(row[3] - white.right) < 1.2);
      CHECK(std::abs(row[4] - white.bottom) < 1.2);
    }
  }
  CHECK(compared > 120);
}

// A point is seen where the part that SeenPartOf gives has it.
TEST_CASE("what is seen of a box after turns and mirrors") {
  ImageOrigin origin(100, 100);
  const double c = std::cos(0.4), s = std::sin(0.4);
  origin.Moves({-c, s, 110, s, c, -20});  // mirrored and turned
  origin.EndsAt(90, 110);
  const std::vector<Point> square = {{5, 5}, {95, 5}, {95, 85}, {5, 85}};
  const std::vector<Point> seen = origin.SeenPartOf(square);
  const PointMap back = origin.map().Inverse();
  double area = 0;
  constexpr double kStep = 0.25;
  for (double y = 5 + kStep / 2; y < 85; y += kStep) {
    for (double x = 5 + kStep / 2; x < 95; x += kStep) {
      const Point from = back({x, y});
      const bool inside = from.x >= 0 && from.x <= 100 && from.y >= 0 && from.y <= 100;
      area += inside ? kStep * kStep : 0;
    }
  }
  CHECK(AreaOf(seen) == doctest::Approx(area).epsilon(0.003));
  CHECK(area < 7000);
}

}  // namespace mxtrain::test
