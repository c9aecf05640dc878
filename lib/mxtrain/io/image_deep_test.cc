// SPDX-License-Identifier: Apache-2.0
// 16 bits per channel, from the files to the numbers of a batch.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/io/crop_resize.h"
#include "mxtrain/io/pixel_statistics.h"
#include "tests/support/error_message.h"
#include "tests/support/image_bytes.h"
#include "tests/support/pipeline_data.h"

namespace mxtrain::test {
namespace {

using Samples = std::vector<uint16_t>;

// Samples that differ in all bits.
Samples Deep(int count) {
  Samples samples;
  for (int i = 0; i < count; ++i) samples.push_back(static_cast<uint16_t>(i * 40503 + i / 3));
  return samples;
}

std::string BigEndian(const Samples& samples) {
  std::string bytes;
  for (const uint16_t sample : samples) bytes += Number(sample, 2, true);
  return bytes;
}

std::string DeepPng(int height, int width, int colour_type, const Samples& samples) {
  const size_t row = samples.size() / static_cast<size_t>(height);
  std::string rows;
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(y * row);
    rows += '\0' + BigEndian({begin, begin + static_cast<std::ptrdiff_t>(row)});
  }
  return Png(static_cast<uint32_t>(width), static_cast<uint32_t>(height), 16, colour_type, rows);
}

std::string DeepPnm(int height, int width, int channels, const Samples& samples) {
  return format("P{} {} {} 65535\n", channels == 3 ? 6 : 5, width, height) + BigEndian(samples);
}

// Gray, one strip, in either byte order; by the specification, revision 6.0.
std::string DeepTiff(int height, int width, const Samples& samples, bool big_endian,
                     int orientation) {
  const auto n = [=](size_t value, int bytes) {
    return Number(static_cast<uint32_t>(value), bytes, big_endian);
  };
  std::string data;
  for (const uint16_t sample : samples) data += n(sample, 2);
  const auto entry = [&](int tag, size_t value) {
    return n(static_cast<size_t>(tag), 2) + n(4, 2) + n(1, 4) + n(value, 4);
  };
  const auto h = static_cast<size_t>(height), w = static_cast<size_t>(width);
  const auto small = [&](int tag, size_t value) {
    return n(static_cast<size_t>(tag), 2) + n(3, 2) + n(1, 4) + n(value, 2) + n(0, 2);
  };
  return std::string(big_endian ? "MM" : "II") + n(42, 2) + n(8 + data.size(), 4) + data +
         n(10, 2) + entry(256, w) + entry(257, h) + small(258, 16) + small(259, 1) + small(262, 1) +
         entry(273, 8) + small(274, static_cast<size_t>(orientation)) + small(277, 1) +
         entry(278, h) + entry(279, data.size()) + n(0, 4);
}

TEST_CASE("PNG, PNM and TIFF keep 16 bits where they are asked for, and no other way") {
  const Samples gray = Deep(5 * 7), rgb = Deep(5 * 7 * 3);
  const std::pair<std::string, Samples> files[] = {
      {DeepPng(5, 7, 0, gray), gray},         {DeepPng(5, 7, 2, rgb), rgb},
      {DeepPnm(5, 7, 1, gray), gray},         {DeepPnm(5, 7, 3, rgb), rgb},
      {DeepTiff(5, 7, gray, false, 1), gray}, {DeepTiff(5, 7, gray, true, 1), gray}};
  for (const auto& [bytes, samples] : files) {
    CHECK(ProbeImage(bytes)->bits == 16);
    const auto deep = DecodeImage(bytes, {.bits = 16});
    REQUIRE(deep.has_value());
    CHECK(deep->deep == samples);
    CHECK(deep->pixels.empty());
    const auto image = DecodeImage(bytes);
    REQUIRE(image.has_value());
    CHECK_FALSE(image->is_deep());
    for (size_t i = 0; i < samples.size(); ++i)
      CHECK(std::abs(image->pixels[i] - samples[i] / 257.0) <= 1);
  }
  const std::string shallow = EncodePng(Pattern(5, 7, 3));
  CHECK(ProbeImage(shallow)->bits == 8);
  CHECK(DecodeImage(shallow, {.bits = 16})->pixels == Pattern(5, 7, 3).pixels);
}

TEST_CASE("alpha, orientation and channels of a deep image") {
  const Samples gray_alpha{1000, 65535, 40000, 0, 60000, 32768};
  CHECK(DecodeImage(DeepPng(1, 3, 4, gray_alpha), {.bits = 16})->deep ==
        Samples{1000, 65535,
                static_cast<uint16_t>(std::lround((60000.0 * 32768 + 65535.0 * 32767) / 65535))});
  const Samples gray = Deep(6);
  const auto turned = DecodeImage(DeepTiff(2, 3, gray, false, 6), {.bits = 16});
  CHECK(turned->height == 3);
  CHECK(turned->deep == Samples{gray[3], gray[0], gray[4], gray[1], gray[5], gray[2]});
  CHECK(DecodeImage(DeepPnm(1, 2, 1, {7, 50000}), {.channels = 3, .bits = 16})->deep ==
        Samples{7, 7, 7, 50000, 50000, 50000});
  const auto luma =
      DecodeImage(DeepPnm(1, 1, 3, {10000, 20000, 60000}), {.channels = 1, .bits = 16});
  CHECK(luma->deep == Samples{static_cast<uint16_t>(2990 + 11740 + 6840)});
}

TEST_CASE("a deep image is cropped, flipped and resized like one of 8 bits, in finer steps") {
  Image deep, high;
  deep.ResizeDeep(12, 17, 3);
  high.Resize(12, 17, 3);
  for (size_t i = 0; i < deep.deep.size(); ++i) {
    high.pixels[i] = static_cast<uint8_t>(i * 31);
    deep.deep[i] = static_cast<uint16_t>(high.pixels[i] * 257);
  }
  const Frame frame{12, 17, {0, 0, 12, 17}, 1};
  PixelLevels plain;
  const PixelLevels levels = LevelsOf({{0.4, 0.5, 0.6}, {0.2, 0.3, 0.25}}, 3, "test");
  for (const int how : {kNearest, kBilinear, kCubic, kArea}) {
    for (const auto& [height, width] : {std::pair{10, 13}, {12, 17}, {5, 6}, {20, 31}}) {
      for (const bool mirrored : {false, true}) {
        CropResize crop = CropResize::Whole(12, 17);
        crop.Crop({1, 2, 10, 13});
        REQUIRE(crop.Resize(height, width, how));
        crop.mirrored = mirrored;
        crop.upside_down = mirrored && how == kArea;
        Image resized, wanted;
        Apply(crop, deep, frame, &resized);
        Apply(crop, high, frame, &wanted);
        REQUIRE(resized.deep.size() == wanted.pixels.size());
        for (size_t i = 0; i < wanted.pixels.size(); ++i)
          CHECK(std::abs(resized.deep[i] / 257.0 - wanted.pixels[i]) <= 0.51);
        for (const PixelLevels& l : {plain, levels}) {
          const size_t plane = wanted.pixels.size() / 3;
          std::vector<float> planes(3 * plane);
          ApplyToPlanes(crop, deep, frame, l, planes.data());
          for (size_t i = 0; i < resized.deep.size(); ++i) {
            const double value = resized.deep[i] / 65535.0;
            const size_t c = i % 3;
            const double mean[] = {0.4, 0.5, 0.6}, std[] = {0.2, 0.3, 0.25};
            const double number = l.by_255 ? value : (value - mean[c]) / std[c];
            CHECK(std::abs(planes[c * plane + i / 3] - number) < 5e-5);
          }
        }
      }
    }
  }
}

// In double precision, of [height, width] samples; centers of pixels are at halves.
double Bilinear(const Samples& from, int height, int width, double y, double x) {
  const auto at = [&](double v, double u) {
    const auto row = static_cast<size_t>(std::clamp(v, 0.0, height - 1.0)),
               column = static_cast<size_t>(std::clamp(u, 0.0, width - 1.0));
    return static_cast<double>(from[row * static_cast<size_t>(width) + column]);
  };
  y -= 0.5, x -= 0.5;
  const double v = std::floor(y), u = std::floor(x), low = y - v, right = x - u;
  return (1 - low) * ((1 - right) * at(v, u) + right * at(v, u + 1)) +
         low * ((1 - right) * at(v + 1, u) + right * at(v + 1, u + 1));
}

TEST_CASE("a deep image is resized as in double precision, whatever its low bytes are") {
  Image deep;
  deep.ResizeDeep(9, 11, 1);
  deep.deep = Deep(9 * 11);
  for (const auto& [height, width] : {std::pair{5, 6}, {9, 22}, {20, 31}}) {
    CropResize crop = CropResize::Whole(9, 11);
    REQUIRE(crop.Resize(height, width, kBilinear));
    std::vector<float> planes(static_cast<size_t>(height * width));
    ApplyToPlanes(crop, deep, {9, 11, {0, 0, 9, 11}, 1}, PixelLevels{}, planes.data());
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double wanted =
            Bilinear(deep.deep, 9, 11, (y + 0.5) * 9 / height, (x + 0.5) * 11 / width);
        CHECK(std::abs(planes[static_cast<size_t>(y * width + x)] * 65535.0 - wanted) < 0.05);
      }
    }
  }
}

TEST_CASE("normalize: auto measures all 16 bits, also beside files of 8") {
  const TempDir dir;
  const Samples close{25600, 25700, 25800, 25855};  // of one high byte
  dir.Write("a/0.png", DeepPng(2, 2, 0, close));
  Image shallow = Pattern(2, 2, 1);
  dir.Write("b/1.png", EncodePng(shallow));
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 4; ++i) {
    for (const double value : {close[i] / 65535.0, shallow.pixels[i] / 255.0})
      sum += value, squares += value * value;
  }
  const PixelStatistics all = MeasurePixels(*Folder(dir), 1, 16);
  CHECK(all.mean[0] == doctest::Approx(sum / 8).epsilon(1e-12));
  CHECK(all.std[0] == doctest::Approx(std::sqrt(squares / 8 - sum / 8 * sum / 8)).epsilon(1e-9));
}

TEST_CASE("all 65536 values reach a batch, each as itself") {
  const TempDir dir;
  Samples all;
  for (int i = 0; i < 65536; ++i) all.push_back(static_cast<uint16_t>(i));
  dir.Write("a/0.png", DeepPng(256, 256, 0, all));
  dir.Write("b/1.pgm", DeepPnm(256, 256, 1, all));
  dir.Write("b/2.tif", DeepTiff(256, 256, all, false, 1));
  Runtime runtime = MakeRuntime();
  for (const char* cache : {"none", "ram"}) {
    PipelineParam param =
        Param({{"batch_size", "3"}, {"channels", "1"}, {"bits", "16"}, {"cache", cache}});
    param.pixels = true;  // as for a GPU: deep images are float32 there too
    const auto iter = NewPipeline(runtime, Folder(dir), {{"center_crop", {{"", "256"}}}}, param);
    CHECK_FALSE(iter->provide_data()[0].pixels);
    const std::vector<float> data = RunOut(*iter)[0].data;
    REQUIRE(data.size() == 3 * 65536);
    for (size_t i = 0; i < data.size(); ++i)
      if (data[i] != static_cast<float>(i % 65536) / 65535.0f) FAIL("sample ", i, ": ", data[i]);
  }
}

TEST_CASE("transforms that work on 8 bits are refused with bits: 16") {
  const TempDir dir;
  WriteImages(dir, 4);
  Runtime runtime = MakeRuntime();
  const auto why = [&](const std::vector<TransformSpec>& transforms) {
    return MessageOf([&] {
      NewPipeline(runtime, Folder(dir), transforms, Param({{"batch_size", "2"}, {"bits", "16"}}));
    });
  };
  CHECK(why({{"resize", {{"", "(8, 8)"}}}, {"rotate", {{"", "10"}}}}) ==
        "the transform rotate works on 8 bits per channel; with bits: 16 crops, resizes, flips and "
        "normalize can be used");
  CHECK(
      Has(why({{"resize", {{"", "(8, 8)"}, {"antialias", "true"}}}}), "antialias works on 8 bits"));
  CHECK(why({{"random_resized_crop", {{"", "8"}}}, {"flip", {}}, {"normalize", {{"mean", "0.5"}}}})
            .empty());
  CHECK(Has(MessageOf([] { Param({{"batch_size", "2"}, {"bits", "12"}}); }), "bits"));
  dir.Write("points.csv", "a,b\n1,0\n2,1\n");
  CHECK(MessageOf([&] {
          NewPipeline(runtime,
                      MakeSource("csv", {{"path", dir.path("points.csv")},
                                         {"data_fields", "(data=a)"},
                                         {"label_fields", "(softmax_label=b)"}}),
                      {}, Param({{"batch_size", "2"}, {"bits", "16"}}));
        }) == "bits: 16 is for images, but the data are numbers: remove it");
}

}  // namespace
}  // namespace mxtrain::test
