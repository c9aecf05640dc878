// SPDX-License-Identifier: Apache-2.0
// Operations on pixels against independently written definitions, and the two transforms that draw
// from them.
#include "mxtrain/io/internal/pixels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mxtrain/base/philox.h"
#include "mxtrain/io/augmenter.h"
#include "tests/support/augmented.h"
#include "tests/support/image_bytes.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

Image NoiseBetween(int height, int width, int channels, int low, int high) {
  Image image;
  image.Resize(height, width, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<uint8_t>(
        low + static_cast<int>(PhiloxAt(5, 6, 8, i) % static_cast<uint32_t>(high - low + 1)));
  }
  return image;
}

Image Applied(const TransformSpec& spec, const Image& image, int64_t index) {
  return Augmented({spec}, image, index);
}

bool SamePixels(const Image& a, const Image& b) {
  return std::equal(a.pixels.begin(), a.pixels.end(), b.pixels.begin(), b.pixels.end());
}

}  // namespace

TEST_CASE("posterize keeps upper bits, solarize inverts bright values") {
  for (const int channels : {1, 3}) {
    const Image from = Noise(9, 11, channels);
    for (int bits = 0; bits <= 8; ++bits) {
      Image got = from;
      Posterize(bits, &got);
      const int step = 1 << (8 - bits);
      for (size_t i = 0; i < from.pixels.size(); ++i)
        CHECK(got.pixels[i] == from.pixels[i] / step * step);
    }
    Image got = from;
    Solarize(100, &got);
    for (size_t i = 0; i < from.pixels.size(); ++i)
      CHECK(got.pixels[i] == (from.pixels[i] >= 100 ? 255 - from.pixels[i] : from.pixels[i]));
  }
}

TEST_CASE("auto-contrast stretches each channel to the whole range") {
  Image got = NoiseBetween(16, 16, 3, 60, 180);
  const Image from = got;
  AutoContrast(&got);
  for (size_t c = 0; c < 3; ++c) {
    int low = 255, high = 0;
    for (size_t i = c; i < from.pixels.size(); i += 3)
      low = std::min<int>(low, from.pixels[i]), high = std::max<int>(high, from.pixels[i]);
    for (size_t i = c; i < from.pixels.size(); i += 3)
      CHECK(std::abs(got.pixels[i] - 255.0 * (from.pixels[i] - low) / (high - low)) <= 0.5);
  }
  Image flat = NoiseBetween(4, 4, 1, 9, 9);
  AutoContrast(&flat);
  CHECK(flat.pixels[3] == 9);
}

// A pixel's new value is the count of darker pixels of its channel, and half a step, by the step of
// PIL.
TEST_CASE("equalize spreads the values of each channel evenly") {
  Image got = NoiseBetween(64, 64, 3, 20, 90);
  const Image from = got;
  Equalize(&got);
  for (size_t c = 0; c < 3; ++c) {
    int64_t brightest = 0, highest = 0;
    for (size_t i = c; i < from.pixels.size(); i += 3)
      highest = std::max<int64_t>(highest, from.pixels[i]);
    for (size_t i = c; i < from.pixels.size(); i += 3) brightest += from.pixels[i] == highest;
    const int64_t step = (64 * 64 - brightest) / 255;
    for (size_t i = c; i < from.pixels.size(); i += 3 * 97) {
      int64_t darker = 0;
      for (size_t k = c; k < from.pixels.size(); k += 3) darker += from.pixels[k] < from.pixels[i];
      CHECK(got.pixels[i] == std::min<int64_t>(255, (step / 2 + darker) / step));
    }
  }
  Image flat = NoiseBetween(32, 32, 1, 7, 7);
  Equalize(&flat);
  CHECK(flat.pixels[5] == 7);
}

TEST_CASE("sharpness goes away from a blur or towards it, except at the border") {
  const Image from = Noise(10, 12, 3);
  for (const double factor : {0.0, 0.4, 1.0, 1.9}) {
    Image got = from, scratch;
    ScaleSharpness(factor, &got, &scratch);
    for (int y = 0; y < from.height; ++y) {
      for (int x = 0; x < from.width; ++x) {
        for (int c = 0; c < 3; ++c) {
          const auto at = [&](int dy, int dx) {
            const int byte = ((y + dy) * from.width + x + dx) * 3 + c;
            return static_cast<double>(from.pixels[static_cast<size_t>(byte)]);
          };
          double expected = at(0, 0);
          if (y > 0 && x > 0 && y < from.height - 1 && x < from.width - 1) {
            double blur = 4 * at(0, 0);
            for (int dy = -1; dy <= 1; ++dy) {
              for (int dx = -1; dx <= 1; ++dx) blur += at(dy, dx);
            }
            expected = std::clamp(blur / 13 + factor * (at(0, 0) - blur / 13), 0.0, 255.0);
          }
          CHECK(std::abs(got.pixels[static_cast<size_t>((y * from.width + x) * 3 + c)] -
                         expected) <= 0.5 + 1e-9);
        }
      }
    }
  }
}

TEST_CASE(
    "trivial_augment and rand_augment draw many different images, the same from the same numbers, "
    "of the same size") {
  for (const TransformSpec& spec :
       {TransformSpec{"trivial_augment", {}},
        TransformSpec{"rand_augment", {{"n", "2"}, {"magnitude", "9"}}}}) {
    for (const int channels : {1, 3}) {
      const Image from = NoiseBetween(20, 24, channels, 30, 200);
      std::set<std::vector<uint8_t>> different;
      int same = 0;
      for (int64_t i = 0; i < 200; ++i) {
        const Image got = Applied(spec, from, i);
        REQUIRE(got.height == from.height);
        REQUIRE(got.width == from.width);
        CHECK(SamePixels(got, Applied(spec, from, i)));
        same += SamePixels(got, from);
        different.insert(std::vector<uint8_t>(got.pixels.begin(), got.pixels.end()));
      }
      CHECK(different.size() > (spec.name == "trivial_augment" ? 100 : 60));
      CHECK(same > 0);   // the identity is one of the operations
      CHECK(same < 80);  // and one of few
    }
  }
  CHECK(Augmenter({{"rand_augment", {{"", "3"}}}}, 3).size() == 1);
  CHECK_THROWS_AS(Augmenter({{"rand_augment", {{"magnitude", "31"}}}}, 3), Error);
}

// Of the 31 bins two move by whole pixels, besides the first: by 16 and by 32, as the pixels are.
TEST_CASE("a translation moves the image's pixels and fills the rest") {
  const Image from = NoiseBetween(64, 64, 1, 50, 250);
  int found = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    const Image got = Applied({"trivial_augment", {{"fill", "7"}}}, from, i);
    for (const int shift : {-32, -16, 16, 32}) {
      bool moved = true;
      for (int y = 0; moved && y < 64; ++y) {
        for (int x = 0; moved && x < 64; ++x) {
          const int fx = x - shift;
          moved = got.row(y)[x] == (fx >= 0 && fx < 64 ? from.row(y)[fx] : 7);
        }
      }
      found += moved;
    }
  }
  CHECK(found > 0);
}
