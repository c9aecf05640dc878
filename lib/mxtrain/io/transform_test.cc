// SPDX-License-Identifier: Apache-2.0
// Warping, colour and erasing against independent formulas in double, with the numbers that the
// stream must have drawn.
#include "mxtrain/io/transform.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/pixel_statistics.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/augmented.h"
#include "tests/support/error_message.h"
#include "tests/support/image_bytes.h"
#include "tests/support/temp_dir.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

// A smooth image: value = a plane in x and y, the same in all channels.
Image Slope(int height, int width) {
  Image image;
  image.Resize(height, width, 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < 3 * width; ++x)
      image.row(y)[x] = static_cast<uint8_t>(20 + 2 * (x / 3) + y);
  }
  return image;
}

using Colour = std::array<double, 3>;

double Luma(const Colour& c) {
  return 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2];
}

// The greatest distance between `got` and map(each pixel of `from`), clamped.
template <typename Map>
double Worst(const Image& got, const Image& from, Map&& map) {
  REQUIRE(got.pixels.size() == from.pixels.size());
  double worst = 0;
  for (size_t i = 0; i < from.pixels.size(); i += 3) {
    const Colour expected =
        map(Colour{double(from.pixels[i]), double(from.pixels[i + 1]), double(from.pixels[i + 2])});
    for (size_t c = 0; c < 3; ++c)
      worst = std::max(worst, std::abs(got.pixels[i + c] - std::clamp(expected[c], 0.0, 255.0)));
  }
  return worst;
}

// The expected value at (x, y) of a warp: the image at matrix * (p - c) + c, on the slope's plane.
double WorstOfWarp(const Image& got, const Image& slope, double a, double b, double c, double d) {
  const double cx = (slope.width - 1) / 2.0, cy = (slope.height - 1) / 2.0;
  double worst = 0;
  int inside = 0;
  for (int y = 0; y < got.height; ++y) {
    for (int x = 0; x < got.width; ++x) {
      const double sx = a * (x - cx) + b * (y - cy) + cx, sy = c * (x - cx) + d * (y - cy) + cy;
      if (sx < 0.5 || sy < 0.5 || sx > slope.width - 1.5 || sy > slope.height - 1.5) continue;
      ++inside;
      worst = std::max(worst, std::abs(got.row(y)[3 * x] - (20 + 2 * sx + sy)));
    }
  }
  CHECK(inside > got.height * got.width / 4);
  return worst;
}

std::string WhyNoTransform(const TransformSpec& spec) {
  return MessageOf([&] { Augmenter({spec}, 3); });
}

}  // namespace

TEST_CASE("rotate, shear, scale and aspect map coordinates about the center") {
  const Image slope = Slope(61, 73);
  constexpr double kDegree = std::numbers::pi / 180;
  for (int64_t i = 0; i < 20; ++i) {
    RandomStream random(kAugmentSeed, 0, i);
    random.Uniform();  // the chance
    const RandomStream drawn = random;
    const auto number = [&](double low, double high) {
      return RandomStream(drawn).Uniform(low, high);
    };
    const double turn = number(-30, 30) * kDegree;
    // Counter-clockwise as displayed: points right of the center move up.
    CHECK(WorstOfWarp(Augmented({{"rotate", {{"", "30"}}}}, slope, i), slope, std::cos(turn),
                      -std::sin(turn), std::sin(turn), std::cos(turn)) < 1.1);
    const double shear = number(5, 15) * kDegree;
    CHECK(WorstOfWarp(Augmented({{"shear", {{"", "5, 15"}}}}, slope, i), slope, 1, -std::tan(shear),
                      0, 1) < 1.1);
    const double factor = std::exp(number(std::log(0.8), std::log(1.5)));
    CHECK(WorstOfWarp(Augmented({{"scale", {{"", "0.8, 1.5"}}}}, slope, i), slope, 1 / factor, 0, 0,
                      1 / factor) < 1.1);
    const double wide = std::sqrt(std::exp(number(std::log(0.8), std::log(1.5))));
    CHECK(WorstOfWarp(Augmented({{"aspect", {{"", "0.8, 1.5"}}}}, slope, i), slope, 1 / wide, 0, 0,
                      wide) < 1.1);
  }
  CHECK(Augmented({{"rotate", {{"", "30"}, {"p", "0"}}}}, slope).pixels == slope.pixels);
  // Half a turn is a flip both ways, to the pixel.
  const Image noise = Noise(9, 12, 3);
  CHECK(
      Augmented({{"rotate", {{"", "180, 180"}, {"interpolation", "nearest"}}}}, noise).pixels ==
      Augmented({{"flip", {{"p", "1"}}}, {"flip", {{"p", "1"}, {"direction", "vertical"}}}}, noise)
          .pixels);
  const Image corner = Augmented({{"rotate", {{"", "45, 45"}, {"fill", "99"}}}}, noise);
  CHECK(corner.pixels[0] == 99);
}

TEST_CASE("pixels from outside a rotated image are the edge, or the image mirrored at it") {
  const Image noise = Noise(14, 19, 3);
  const double cx = (noise.width - 1) / 2.0, cy = (noise.height - 1) / 2.0,
               angle = 40 * std::numbers::pi / 180;
  const auto mirrored = [](int i, int size) {
    return i < 0 ? -i - 1 : i >= size ? 2 * size - 1 - i : i;
  };
  const auto nearest = [](int i, int size) { return std::clamp(i, 0, size - 1); };
  const auto compare = [&](const char* mode, const auto& inside) {
    const Image got = Augmented(
        {{"rotate", {{"", "40, 40"}, {"interpolation", "nearest"}, {"fill_mode", mode}}}}, noise);
    int outside = 0;
    for (int y = 0; y < got.height; ++y) {
      for (int x = 0; x < got.width; ++x) {
        const double sx = std::cos(angle) * (x - cx) - std::sin(angle) * (y - cy) + cx,
                     sy = std::sin(angle) * (x - cx) + std::cos(angle) * (y - cy) + cy;
        const bool tie = std::abs(sx - std::floor(sx) - 0.5) < 0.05 ||
                         std::abs(sy - std::floor(sy) - 0.5) < 0.05;
        if (tie) continue;  // rounded either way
        const int column = static_cast<int>(std::lround(sx)),
                  row = static_cast<int>(std::lround(sy));
        outside += column < 0 || row < 0 || column >= noise.width || row >= noise.height;
        CHECK(got.row(y)[3 * x] ==
              noise.row(inside(row, noise.height))[3 * inside(column, noise.width)]);
      }
    }
    CHECK(outside > 20);
  };
  compare("reflect", mirrored);
  compare("edge", nearest);
}

TEST_CASE(
    "brightness, contrast and saturation multiply distances from black, from the mean luma, from "
    "each pixel's luma") {
  const Image image = Noise(20, 31, 3);
  double mean = 0;
  Worst(image, image, [&](Colour c) { return mean += Luma(c) / (20 * 31), c; });
  for (int64_t i = 0; i < 20; ++i) {
    const double f = RandomStream(kAugmentSeed, 0, i).Uniform(0.6, 1.4);
    CHECK(Worst(Augmented({{"brightness", {{"", "0.4"}}}}, image, i), image, [&](Colour c) {
            return Colour{f * c[0], f * c[1], f * c[2]};
          }) < 0.51);
    CHECK(Worst(Augmented({{"contrast", {{"", "0.4"}}}}, image, i), image, [&](Colour c) {
            for (double& v : c) v = mean + f * (v - mean);
            return c;
          }) < 0.51);
    CHECK(Worst(Augmented({{"saturation", {{"", "0.4"}}}}, image, i), image, [&](Colour c) {
            const double luma = Luma(c);
            for (double& v : c) v = luma + f * (v - luma);
            return c;
          }) < 0.51);
  }
  const double f = RandomStream(kAugmentSeed, 0, 0).Uniform(0, 4);  // never below 0
  CHECK(Worst(Augmented({{"brightness", {{"", "3"}}}}, image), image, [&](Colour c) {
          return Colour{f * c[0], f * c[1], f * c[2]};
        }) < 0.51);
  const Image gray = Noise(5, 7, 1);
  const Image brighter = Augmented({{"brightness", {{"", "0.4"}}}}, gray);
  const double g = RandomStream(kAugmentSeed, 0, 0).Uniform(0.6, 1.4);
  for (size_t i = 0; i < gray.pixels.size(); ++i)
    CHECK(std::abs(brighter.pixels[i] - std::min(255.0, g * gray.pixels[i])) < 0.51);
  CHECK(Augmented({{"saturation", {{"", "0.4"}}}, {"hue", {{"", "0.4"}}}}, gray).pixels ==
        gray.pixels);
}

TEST_CASE("hue rotates the chroma plane of YIQ and keeps luma") {
  Image image = Noise(20, 30, 3);
  for (uint8_t& v : image.pixels) v = static_cast<uint8_t>(96 + v / 4);  // nothing is clamped
  for (int64_t i = 0; i < 20; ++i) {
    const double angle = 2 * std::numbers::pi * RandomStream(kAugmentSeed, 0, i).Uniform(-0.5, 0.5);
    CHECK(Worst(Augmented({{"hue", {{"", "0.5"}}}}, image, i), image, [&](Colour c) {
            // FCC NTSC 1953, with the inverse solved here
            const double y = Luma(c), in_phase = 0.5959 * c[0] - 0.2746 * c[1] - 0.3213 * c[2];
            const double quadrature = 0.2115 * c[0] - 0.5227 * c[1] + 0.3112 * c[2];
            const double p = std::cos(angle) * in_phase - std::sin(angle) * quadrature;
            const double q = std::sin(angle) * in_phase + std::cos(angle) * quadrature;
            return Colour{y + 0.956 * p + 0.619 * q, y - 0.272 * p - 0.647 * q,
                          y - 1.106 * p + 1.703 * q};
          }) < 1.5);
  }
  CHECK(Worst(Augmented({{"hue", {{"", "0"}}}}, image), image, [](Colour c) { return c; }) <= 1);
}

TEST_CASE("lighting adds a combination of AlexNet's eigenvectors, normal in each") {
  Image image = Noise(4, 4, 3);
  for (uint8_t& v : image.pixels) v = static_cast<uint8_t>(100 + v / 8);
  const double values[3] = {55.46, 4.794, 1.148};
  const double vectors[3][3] = {
      {-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}};
  double sum = 0, squares = 0;
  constexpr int kTimes = 2000;
  for (int64_t i = 0; i < kTimes; ++i) {
    RandomStream random(kAugmentSeed, 0, i);
    double offset[3] = {};
    for (int k = 0; k < 3; ++k) {
      const double u = random.Uniform(), v = random.Uniform();
      const double normal = std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
      sum += normal, squares += normal * normal;
      for (int c = 0; c < 3; ++c) offset[c] += vectors[c][k] * values[k] * 0.3 * normal;
    }
    if (i >= 50) continue;
    CHECK(Worst(Augmented({{"lighting", {{"", "0.3"}}}}, image, i), image, [&](Colour c) {
            return Colour{c[0] + offset[0], c[1] + offset[1], c[2] + offset[2]};
          }) < 0.51);
  }
  CHECK(std::abs(sum / (3 * kTimes)) < 0.05);
  CHECK(squares / (3 * kTimes) == doctest::Approx(1).epsilon(0.06));
}

TEST_CASE(
    "random_erasing covers one box of the given area and aspect ratio, in part of the images") {
  Image image;
  image.Resize(60, 80, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{7});
  int erased = 0;
  double least = 1, most = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const Image result = Augmented(
        {{"random_erasing", {{"area", "0.05, 0.2"}, {"aspect", "0.5, 2"}, {"fill", "200"}}}}, image,
        i);
    int top = 99, left = 99, bottom = -1, right = -1, count = 0;
    for (int y = 0; y < 60; ++y) {
      for (int x = 0; x < 80; ++x) {
        if (result.row(y)[3 * x] == 7) continue;
        REQUIRE(result.row(y)[3 * x + 2] == 200);
        ++count;
        top = std::min(top, y), left = std::min(left, x), bottom = std::max(bottom, y),
        right = std::max(right, x);
      }
    }
    if (count == 0) continue;
    ++erased;
    const double h = bottom - top + 1, w = right - left + 1;
    CHECK(count == h * w);
    CHECK(h / w > 0.5 * 0.9);
    CHECK(h / w < 2 * 1.1);
    least = std::min(least, count / 4800.0);
    most = std::max(most, count / 4800.0);
  }
  CHECK(erased > 430);
  CHECK(erased < 570);
  CHECK(least < 0.06);
  CHECK(least > 0.045);
  CHECK(most > 0.19);
  CHECK(most < 0.21);
  const Image noisy =
      Augmented({{"random_erasing",
                  {{"", "1"}, {"noise", "True"}, {"area", "1, 1"}, {"aspect", "0.75, 0.75"}}}},
                image);
  CHECK(std::count(noisy.pixels.begin(), noisy.pixels.end(), 7) < 200);
}

TEST_CASE("every transform is a function of seed, epoch and index") {
  const Image image = Noise(24, 24, 3);
  const std::vector<TransformSpec> all = {{"rotate", {{"", "20"}}},
                                          {"shear", {{"", "10"}}},
                                          {"scale", {{"", "0.8,1.2"}}},
                                          {"aspect", {{"", "0.8,1.2"}}},
                                          {"random_crop", {{"", "20"}, {"pad", "2"}}},
                                          {"random_resized_crop", {{"", "16"}}},
                                          {"flip", {}},
                                          {"brightness", {{"", "0.4"}}},
                                          {"contrast", {{"", "0.4"}}},
                                          {"saturation", {{"", "0.4"}}},
                                          {"hue", {{"", "0.1"}}},
                                          {"lighting", {}},
                                          {"random_erasing", {{"", "1"}}}};
  for (const TransformSpec& spec : all) {
    CAPTURE(spec.name);
    int by_epoch = 0, by_index = 0, by_seed = 0;
    for (int64_t i = 0; i < 8; ++i) {
      const Image once = Augmented({spec}, image, i, 3);
      CHECK(Augmented({spec}, image, i, 3).pixels == once.pixels);
      by_epoch += Augmented({spec}, image, i, 4).pixels != once.pixels;
      by_index += Augmented({spec}, image, i + 100, 3).pixels != once.pixels;
      by_seed += Augmented({spec}, image, i, 3, 99).pixels != once.pixels;
    }
    CHECK(by_epoch > 0);
    CHECK(by_index > 0);
    CHECK(by_seed > 0);
  }
}

TEST_CASE("parameters of transforms have ranges, named in errors") {
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(WhyNoTransform({"rotate", {{"", "400"}}}), "rotate: degrees = ");
  has(WhyNoTransform({"rotate", {{"", "5, 1"}}}),
      "expected one number, or two numbers, minimum and maximum, within -360 .. 360");
  has(WhyNoTransform({"scale", {{"", "0.5"}}}), "scale: factor = ");
  has(WhyNoTransform({"hue", {{"", "0.6"}}}), "out of range (0 .. 0.5)");
  has(WhyNoTransform({"brightness", {}}), "brightness needs the parameter 'amount'");
  has(WhyNoTransform({"random_erasing", {{"area", "0.5, 2"}}}), "random_erasing: area = ");
  has(WhyNoTransform({"lighting", {{"sdt", "1"}}}), "did you mean 'std'?");
  has(WhyNoTransform({"normalize", {{"", "auto"}}}),
      "normalize: auto needs a training set to measure");
}

TEST_CASE("normalize: auto takes mean and deviation of the pixels of the readable images") {
  const TempDir dir;
  double sum[3] = {}, squares[3] = {}, n = 0;
  for (int i = 0; i < 6; ++i) {
    Image image = Noise(5 + i, 7, 3);
    for (size_t p = 0; p < image.pixels.size(); ++p) {
      if (p % 3 == 2) image.pixels[p] = static_cast<uint8_t>(image.pixels[p] / (i + 1));
      const double v = image.pixels[p] / 255.0;
      sum[p % 3] += v, squares[p % 3] += v * v;
    }
    n += static_cast<double>(image.pixels.size()) / 3;
    dir.Write(format("a/{}.png", i), EncodePng(image));
  }
  dir.Write("a/broken.png", "no image");
  const auto source = MakeSource("image_folder", {{"path", dir.path()}});
  const PixelStatistics measured = MeasurePixels(*source, 3);
  CHECK(measured.images == 6);
  for (size_t c = 0; c < 3; ++c) {
    const double mean = sum[c] / n;
    CHECK(measured.mean[c] == doctest::Approx(mean).epsilon(1e-9));
    CHECK(measured.std[c] ==
          doctest::Approx(std::sqrt(squares[c] / n - mean * mean)).epsilon(1e-9));
  }
  CHECK(MeasurePixels(*source, 3, 8, 3).images == 3);
  CHECK(MeasurePixels(*source, 1).mean.size() == 1);
  const std::vector<TransformSpec> specs = {{"resize", {{"", "(4, 4)"}}},
                                            {"normalize", {{"from", "auto"}}}};
  CHECK(WantsStatistics(specs));
  const std::vector<TransformSpec> resolved = WithStatistics(specs, measured);
  CHECK_FALSE(WantsStatistics(resolved));
  float numbers[3];
  const uint8_t pixel[3] = {10, 20, 30};
  Augmenter(resolved, 3).ToPlanes(pixel, numbers);
  for (size_t c = 0; c < 3; ++c)
    CHECK(numbers[c] ==
          doctest::Approx((pixel[c] / 255.0 - measured.mean[c]) / measured.std[c]).epsilon(1e-5));
}
