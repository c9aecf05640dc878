// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/draw_label.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace mxtrain::io;

namespace {

Image Black(int height, int width) {
  Image image;
  image.Resize(height, width, 1);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  return image;
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
    Image image = Black(c.height, c.width);
    DrawLabel("cat 0.93", &image);
    CHECK(image.height == c.labelled_height);
    CHECK(image.width == c.labelled_width);
    CHECK(image.channels == 3);
    CHECK(*std::max_element(image.pixels.begin(), image.pixels.end()) > 0);
  }
}
