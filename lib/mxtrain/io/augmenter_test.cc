// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/augmenter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mxtrain/base/error.h"
#include "tests/support/augmented.h"
#include "tests/support/error_message.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

// Every pixel encodes its position: (y, x, 7).
Image Coordinates(int height, int width) {
  Image image;
  image.Resize(height, width, 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      uint8_t* p = image.row(y) + 3 * x;
      p[0] = static_cast<uint8_t>(y), p[1] = static_cast<uint8_t>(x), p[2] = 7;
    }
  }
  return image;
}

// "" for a chain that can be used.
std::string WhyNoChain(const std::vector<TransformSpec>& specs, int channels = 3) {
  return MessageOf([&] { Augmenter(specs, channels).OutputShape(TShape()); });
}

std::pair<int, int> Size(const Image& image) {
  return {image.height, image.width};
}

}  // namespace

TEST_CASE("resize: the shorter edge, or both") {
  CHECK(Size(Augmented({{"resize", {{"", "20"}}}}, Coordinates(40, 60))) == std::pair{20, 30});
  CHECK(Size(Augmented({{"resize", {{"size", "(7, 9)"}}}}, Coordinates(40, 60))) ==
        std::pair{7, 9});
  CHECK(Size(Augmented({{"resize", {{"", "5"}}}}, Coordinates(1, 1))) == std::pair{5, 5});
  CHECK(Augmented({{"resize", {{"", "40"}}}}, Coordinates(40, 60)).pixels ==
        Coordinates(40, 60).pixels);
}

TEST_CASE("letterbox: the image at the upper left, the rest filled") {
  const Image boxed = Augmented({{"letterbox", {{"size", "(30, 33)"}}}}, Coordinates(40, 60));
  const Image image = Augmented({{"resize", {{"", "(22, 33)"}}}}, Coordinates(40, 60));
  REQUIRE(Size(boxed) == std::pair{30, 33});
  for (int y = 0; y < 30; ++y) {
    for (int i = 0; i < 3 * 33; ++i) CHECK(boxed.row(y)[i] == (y < 22 ? image.row(y)[i] : 114));
  }
  const Image black = Augmented({{"letterbox", {{"", "8"}, {"fill", "0"}}}}, Coordinates(40, 20));
  CHECK(Size(black) == std::pair{8, 8});
  CHECK(black.row(7)[3 * 3 + 2] == 7);
  CHECK(black.row(7)[3 * 4 + 2] == 0);
  // A line of pixels does not vanish.
  CHECK(Augmented({{"letterbox", {{"", "8"}}}}, Coordinates(1, 60)).row(0)[2] == 7);
  CHECK(EvaluationTransforms({{"flip", {}}, {"letterbox", {{"", "8"}}}}).size() == 1);
}

TEST_CASE(
    "the longer edge is rounded down and a center at half a pixel to even, as torchvision does") {
  CHECK(Size(Augmented({{"resize", {{"", "20"}}}}, Coordinates(61, 40))) == std::pair{30, 20});
  CHECK(Size(Augmented({{"resize", {{"", "20"}, {"rounding", "earlier"}}}}, Coordinates(61, 40))) ==
        std::pair{31, 20});
  const auto begin = [](int edge, const char* rounding) {
    const Image image =
        Augmented({{"center_crop", {{"", "4"}, {"rounding", rounding}}}}, Coordinates(edge, 9));
    return std::pair{int{image.pixels[0]}, int{image.pixels[1]}};
  };
  CHECK(begin(11, "torchvision") == std::pair{4, 2});  // of 3.5 and 2.5
  CHECK(begin(11, "earlier") == std::pair{3, 2});
}

TEST_CASE("center_crop by a fraction of the shorter edge, before and after a resize") {
  CHECK(Size(Augmented({{"center_crop", {{"fraction", "0.875"}}}}, Coordinates(40, 61))) ==
        std::pair{35, 35});
  const auto crop = [](const char* rounding) {
    return Augmented({{"center_crop", {{"fraction", "0.875"}, {"rounding", rounding}}}},
                     Coordinates(61, 44));
  };
  const Image rounded_down = crop("torchvision");
  CHECK(Size(rounded_down) == std::pair{38, 38});  // of 38.5
  CHECK(rounded_down.row(0)[0] == 11);             // of 11.5
  CHECK(rounded_down.row(0)[1] == 3);
  CHECK(Size(crop("earlier")) == std::pair{39, 39});
  CHECK(Size(Augmented({{"center_crop", {{"fraction", "0.1"}}}}, Coordinates(4, 9))) ==
        std::pair{1, 1});
  const std::vector<TransformSpec> crop_first = {{"center_crop", {{"fraction", "0.5"}}},
                                                 {"resize", {{"", "8"}}}};
  CHECK(Size(Augmented(crop_first, Coordinates(40, 61))) == std::pair{8, 8});
  CHECK(Augmenter(crop_first, 3).OutputShape(TShape()) == TShape{3, 8, 8});
  CHECK(Augmenter({{"resize", {{"", "20"}}}, {"center_crop", {{"fraction", "0.5"}}}}, 3)
            .OutputShape({3, 40, 61}) == TShape{3, 10, 10});
  CHECK(WhyNoChain({{"center_crop", {{"fraction", "0.5"}}}}).find("images of different sizes") !=
        std::string::npos);
  CHECK(WhyNoChain({{"center_crop", {{"fraction", "0.5"}, {"size", "4"}}}})
            .find("either a size or a fraction") != std::string::npos);
  CHECK(WhyNoChain({{"center_crop", {}}}).find("either a size or a fraction") != std::string::npos);
}

TEST_CASE("what cannot be antialiased is rejected") {
  CHECK(WhyNoChain({{"resize", {{"", "4"}, {"interpolation", "area"}, {"antialias", "True"}}}}) ==
        "resize: antialias is for bilinear and bicubic interpolation; area already takes means");
  CHECK(WhyNoChain({{"random_resized_crop",
                     {{"", "4"}, {"interpolation", "nearest"}, {"antialias", "True"}}}}) ==
        "random_resized_crop: antialias is for bilinear and bicubic interpolation; nearest takes "
        "one pixel");
}

TEST_CASE("evaluation has a training chain's sizes without its randomness") {
  const auto chain = EvaluationTransforms(
      {{"rotate", {{"", "5"}}},
       {"random_resized_crop", {{"", "(32, 48)"}, {"area", "0.5, 1"}, {"antialias", "True"}}},
       {"flip", {}},
       {"random_crop", {{"size", "24"}, {"pad", "2"}}},
       {"normalize", {{"mean", "0.5"}}}});
  std::vector<std::string> names;
  for (const TransformSpec& spec : chain) names.push_back(spec.name);
  CHECK(names == std::vector<std::string>{"resize", "center_crop", "center_crop", "normalize"});
  CHECK(chain[0].kwargs == Kwargs{{"antialias", "True"}, {"size", "54"}});
  CHECK(chain[1].kwargs == Kwargs{{"size", "(32, 48)"}});
  CHECK(Augmenter(chain, 3).OutputShape(TShape()) == TShape{3, 24, 24});
}

TEST_CASE("resize by area is the mean of the pixels that a new one covers") {
  const Image image = Coordinates(8, 12);
  const Image half = Augmented({{"resize", {{"size", "(4, 6)"}}}}, image);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 6; ++x) {
      CHECK(std::abs(half.row(y)[3 * x] - (2 * y + 0.5)) <= 0.5);
      CHECK(std::abs(half.row(y)[3 * x + 1] - (2 * x + 0.5)) <= 0.5);
    }
  }
}

TEST_CASE("center_crop takes the center, and enlarges what is too small") {
  const Image cropped = Augmented({{"center_crop", {{"", "4"}}}}, Coordinates(10, 21));
  CHECK(Size(cropped) == std::pair{4, 4});
  CHECK(cropped.row(0)[0] == 3);
  CHECK(cropped.row(0)[1] == 8);
  CHECK(Size(Augmented({{"center_crop", {{"", "(6, 30)"}}}}, Coordinates(5, 5))) ==
        std::pair{6, 30});
}

TEST_CASE("flip mirrors about half of the images, each time the same ones") {
  const Image image = Coordinates(3, 5);
  int flipped = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const Image once = Augmented({{"flip", {}}}, image, i),
                again = Augmented({{"flip", {}}}, image, i);
    CHECK(once.pixels == again.pixels);
    if (once.row(1)[1] == 0) continue;
    ++flipped;
    for (int x = 0; x < 5; ++x) CHECK(once.row(2)[3 * x + 1] == 4 - x);
  }
  CHECK(flipped > 430);
  CHECK(flipped < 570);
  CHECK(Augmented({{"flip", {{"p", "1"}, {"direction", "vertical"}}}}, image).row(0)[0] == 2);
  CHECK(Augmented({{"flip", {{"", "0"}}}}, image).pixels == image.pixels);
}

TEST_CASE("random_crop with padding reaches every position and fills the outside") {
  std::set<std::pair<int, int>> places;
  for (int64_t i = 0; i < 600; ++i) {
    const Image crop = Augmented({{"random_crop", {{"", "6"}, {"pad", "2"}, {"fill", "200"}}}},
                                 Coordinates(6, 6), i);
    REQUIRE(Size(crop) == std::pair{6, 6});
    int inside = 0, top = 99, left = 99;
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 6; ++x) {
        const uint8_t* p = crop.row(y) + 3 * x;
        if (p[2] == 7) {
          ++inside;
          top = std::min(top, y - p[0]);
          left = std::min(left, x - p[1]);
        } else {
          CHECK(p[0] == 200);
        }
      }
    }
    CHECK(inside == (6 - std::abs(top)) * (6 - std::abs(left)));
    places.insert({top, left});
  }
  CHECK(places.size() == 25);
}

TEST_CASE("random_resized_crop keeps to its area and aspect ratio") {
  const std::vector<TransformSpec> specs = {
      {"random_resized_crop",
       {{"size", "(40, 40)"}, {"area", "0.25, 0.5"}, {"interpolation", "nearest"}}}};
  double least = 1, most = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const Image crop = Augmented(specs, Coordinates(200, 200), i);
    const uint8_t *first = crop.row(0), *last = crop.row(39) + 3 * 39;
    // 40 samples of the box, the last one 39/40 of it away from the first
    const double h = (last[0] - first[0]) * 40 / 39.0, w = (last[1] - first[1]) * 40 / 39.0;
    least = std::min(least, h * w / 40000);
    most = std::max(most, h * w / 40000);
    CHECK(w / h > 0.75 * 0.97);
    CHECK(w / h < 4.0 / 3 * 1.03);
  }
  CHECK(least > 0.24);
  CHECK(least < 0.27);
  CHECK(most > 0.48);
  CHECK(most < 0.52);
  // Too wide for the aspect ratio: the fallback.
  CHECK(Size(Augmented({{"random_resized_crop", {{"", "8"}, {"area", "1,1"}}}},
                       Coordinates(10, 200))) == std::pair{8, 8});
  CHECK(Size(Augmented({{"random_resized_crop", {{"", "8"}}}}, Coordinates(1, 1))) ==
        std::pair{8, 8});
}

TEST_CASE("numbers are pixel / 255, or normalised, in planes") {
  Image image;
  image.Resize(1, 2, 3);
  image.pixels = {0, 51, 255, 102, 153, 204};
  std::vector<float> planes(6);
  Augmenter({}, 3).ToPlanes(image.pixels, planes.data());
  CHECK(planes == std::vector<float>{0.0f, 0.4f, 0.2f, 0.6f, 1.0f, 0.8f});
  Augmenter({{"normalize", {{"mean", "0.5, 0.4, 0.3"}, {"std", "0.25,0.5,0.1"}}}}, 3)
      .ToPlanes(image.pixels, planes.data());
  const double expected[] = {(0 - .5) / .25, (.4 - .5) / .25, (.2 - .4) / .5,
                             (.6 - .4) / .5, (1 - .3) / .1,   (.8 - .3) / .1};
  for (size_t i = 0; i < 6; ++i) CHECK(planes[i] == doctest::Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE("normalize: imagenet has the numbers of torchvision's models, also in 0 .. 255") {
  Image image;
  image.Resize(1, 1, 3);
  image.pixels = {7, 130, 250};
  const std::vector<TransformSpec> specs = {{"flip", {}}, {"normalize", {{"", "imagenet"}}}};
  std::vector<float> planes(3);
  Augmenter(specs, 3).ToPlanes(image.pixels, planes.data());
  const double mean[] = {123.675, 116.28, 103.53}, std[] = {58.395, 57.12, 57.375};
  for (size_t c = 0; c < 3; ++c)
    CHECK(planes[c] == doctest::Approx((image.pixels[c] - mean[c]) / std[c]).epsilon(1e-6));
  CHECK(WithNumbers(specs[0]).kwargs.empty());
  CHECK(WithNumbers(specs[1]).kwargs ==
        Kwargs{{"mean", "(0.485, 0.456, 0.406)"}, {"std", "(0.229, 0.224, 0.225)"}});
  const TransformSpec given{"normalize", {{"mean", "0.5"}}};
  CHECK(WithNumbers(given).kwargs == given.kwargs);
}

TEST_CASE("the output size is known beforehand, or requested") {
  CHECK(Augmenter({}, 1).OutputShape({1, 28, 28}) == TShape{1, 28, 28});
  CHECK(Augmenter({{"resize", {{"", "14"}}}}, 1).OutputShape({1, 28, 56}) == TShape{1, 14, 28});
  CHECK(Augmenter({{"resize", {{"", "144"}}}, {"random_crop", {{"", "128"}}}, {"flip", {}}}, 3)
            .OutputShape(TShape()) == TShape{3, 128, 128});
  CHECK(WhyNoChain({{"resize", {{"", "144"}}}}).find("images of different sizes") !=
        std::string::npos);
  CHECK(WhyNoChain({}).find("images of different sizes") != std::string::npos);
}

TEST_CASE("a chain says what is wrong with it") {
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(WhyNoChain({{"flp", {}}}), "there is no transform 'flp'; did you mean 'flip'?");
  has(WhyNoChain({{"resize", {}}}), "resize needs the parameter 'size'");
  has(WhyNoChain({{"resize", {{"", "0"}}}}), "resize: size");
  has(WhyNoChain({{"resize", {{"", "1,2,3"}}}}), "expected one number or (height, width)");
  has(WhyNoChain({{"center_crop", {{"size", "4"}, {"pad", "1"}}}}),
      "center_crop has no parameter 'pad'");
  has(WhyNoChain({{"normalize", {}}, {"center_crop", {{"", "4"}}}}), "normalize must be the last");
  has(WhyNoChain({{"center_crop", {{"", "4"}}}, {"normalize", {{"mean", "1,2"}}}}),
      "mean has 2 numbers, but the images have 3 channels");
  has(WhyNoChain({{"center_crop", {{"", "4"}}}, {"normalize", {{"std", "0"}}}}),
      "expected positive numbers");
  has(WhyNoChain({{"random_resized_crop", {{"", "4"}, {"area", "0.5"}}}}), "expected two numbers");
  has(WhyNoChain({{"center_crop", {{"", "4"}}}, {"normalize", {{"", "imagenet"}, {"std", "1"}}}}),
      "normalize: imagenet has its own mean and std");
  CHECK(ListTransforms().size() == 23);
}

// Decoded images have these limits; a transform once turned a small one into gigabytes.
TEST_CASE("a transform makes no image larger than one that can be decoded") {
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const auto at_run = [](const std::vector<TransformSpec>& specs, int height,
                         int width) -> std::string {
    try {
      Augmented(specs, Coordinates(height, width));
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      return error.what();
    }
    return "no error";
  };
  const TransformSpec last{"resize", {{"", "(16, 16)"}}};
  for (const char* name :
       {"resize", "center_crop", "letterbox", "random_crop", "random_resized_crop"}) {
    has(WhyNoChain({{name, {{"size", "20000"}}}, last}),
        format("{} would make an image of 20000x20000 pixels; at most 100000000", name));
    has(WhyNoChain({{name, {{"size", "(65535, 65535)"}}}, last}),
        format("{} would make an image of 65535x65535 pixels", name));
  }
  has(at_run({{"resize", {{"", "9000"}}}, last}, 1, 5),
      "resize would make an image of 45000x9000 pixels");
  has(at_run({{"resize", {{"", "9000"}, {"rounding", "earlier"}}}, last}, 5, 1),
      "resize would make an image of 9000x45000 pixels");
  has(at_run({{"resize", {{"", "2"}}}, last}, 1, 40000),
      "resize would make an image of 80000x2 pixels; at most 100000000 are supported, with edges "
      "up to 65535");
  for (const char* name : {"center_crop", "random_crop"})
    has(at_run({{name, {{"", "9000"}}}, last}, 1, 5),
        format("{} would make an image of 45000x9000 pixels", name));
  CHECK_THROWS_AS(Augmenter({{"resize", {{"", "9000"}}}}, 3).OutputSize({1, 5}), Error);
}

TEST_CASE("decoding may shrink an image only as far as the first transform does") {
  const auto scale = [&](const std::vector<TransformSpec>& specs, int height, int width,
                         int64_t index = 0) {
    return Augmenter(specs, 3)
        .Begin(height, width, RandomStream(kAugmentSeed, 0, index), 0, specs.size())
        .crop.MinScale();
  };
  CHECK(scale({{"resize", {{"", "144"}}}, {"center_crop", {{"", "128"}}}}, 400, 533) ==
        doctest::Approx(0.36));
  CHECK(scale({{"resize", {{"", "500"}}}}, 400, 533) == 1.0);
  CHECK(scale({{"center_crop", {{"", "128"}}}}, 400, 533) == 1.0);
  for (int64_t i = 0; i < 100; ++i) {
    const double crop =
        scale({{"random_resized_crop", {{"", "128"}, {"area", "0.35, 1"}}}}, 400, 400, i);
    CHECK(crop >= 128.0 / 400);
    CHECK(crop <= 128 / (400 * std::sqrt(0.35 * 0.75)) + 1e-2);
  }
}
