// SPDX-License-Identifier: Apache-2.0
// Crop-resizes against formulas in double and against their steps one by one; parts of JPEG files
// against whole images of another decoder.
#include "mxtrain/io/crop_resize.h"

#include <doctest/doctest.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include "mxtrain/io/augmenter.h"
#include "tests/support/image_bytes.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

// Coarse noise: a JPEG keeps most of it.
Image Blobs(int height, int width) {
  const Image noise = Noise(height, width, 3);
  Image image = noise;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) image.row(y)[3 * x + c] = noise.row(y / 5)[3 * (x / 3) + c];
    }
  }
  return image;
}

Frame WholeOf(const Image& image) {
  return {image.height, image.width, {0, 0, image.height, image.width}, 1};
}

// One line of the box to one line of the grid, by definition.
std::vector<double> ResizeLine(const std::vector<double>& from, int count, int how) {
  const auto n = static_cast<int>(from.size());
  const double step = double(n) / count;
  const auto edge = [&](int i) { return from[static_cast<size_t>(std::clamp(i, 0, n - 1))]; };
  std::vector<double> to;
  for (int g = 0; g < count; ++g) {
    const double at = (g + 0.5) * step;
    if (how == kNearest) {
      to.push_back(edge(static_cast<int>(at)));
    } else if (how == kArea && step > 1) {
      double sum = 0;
      constexpr int kParts = 6000;  // the mean of many points
      for (int k = 0; k < kParts; ++k)
        sum += edge(static_cast<int>(g * step + step * (k + 0.5) / kParts));
      to.push_back(sum / kParts);
    } else if (how == kCubic) {
      const double t = at - 0.5 - std::floor(at - 0.5), a = -0.75;
      const int i = static_cast<int>(std::floor(at - 0.5));
      const auto near = [a](double x) { return (a + 2) * x * x * x - (a + 3) * x * x + 1; };
      const auto far = [a](double x) { return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a; };
      to.push_back(far(1 + t) * edge(i - 1) + near(t) * edge(i) + near(1 - t) * edge(i + 1) +
                   far(2 - t) * edge(i + 2));
    } else {
      const double t = at - 0.5 - std::floor(at - 0.5);
      const int i = static_cast<int>(std::floor(at - 0.5));
      to.push_back((1 - t) * edge(i) + t * edge(i + 1));
    }
  }
  return to;
}

// [grid_height][grid_width] of one channel of a box.
std::vector<std::vector<double>> ResizeChannel(const Image& image, const Box& box, int height,
                                               int width, int channel, int how) {
  std::vector<std::vector<double>> rows;
  for (int y = 0; y < box.height; ++y) {
    std::vector<double> line;
    for (int x = 0; x < box.width; ++x)
      line.push_back(image.row(box.y + y)[(box.x + x) * image.channels + channel]);
    rows.push_back(ResizeLine(line, width, how));
  }
  std::vector<std::vector<double>> result(static_cast<size_t>(height),
                                          std::vector<double>(static_cast<size_t>(width)));
  for (size_t x = 0; x < static_cast<size_t>(width); ++x) {
    std::vector<double> column;
    for (const auto& row : rows) column.push_back(row[x]);
    const std::vector<double> resized = ResizeLine(column, height, how);
    for (size_t y = 0; y < resized.size(); ++y) result[y][x] = resized[y];
  }
  return result;
}

double Worst(const Image& image, const Box& box, int height, int width, int how) {
  CropResize crop = CropResize::Whole(image.height, image.width);
  crop.Crop(box);
  REQUIRE(crop.Resize(height, width, how));
  Image result;
  Apply(crop, image, WholeOf(image), &result);
  double worst = 0;
  for (int c = 0; c < image.channels; ++c) {
    const auto expected = ResizeChannel(image, box, height, width, c, how);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double value =
            std::clamp(expected[static_cast<size_t>(y)][static_cast<size_t>(x)], 0.0, 255.0);
        worst = std::max(worst, std::abs(value - result.row(y)[x * image.channels + c]));
      }
    }
  }
  return worst;
}

// One pass of Pillow's: along a line, rounded to 8 bits.
std::vector<double> PillowLine(const std::vector<double>& from, int count, int how) {
  const auto n = static_cast<int>(from.size());
  const double step = double(n) / count, reduction = std::max(1.0, step),
               support = (how == kCubic ? 2 : 1) * reduction;
  const auto filter = [how](double x) {
    constexpr double a = -0.5;
    x = std::abs(x);
    if (how == kBilinear) return x < 1 ? 1 - x : 0.0;
    if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0.0;
  };
  std::vector<double> to;
  for (int i = 0; i < count; ++i) {
    const double centre = (i + 0.5) * step;
    double sum = 0, weights = 0;
    for (int k = std::max(0, static_cast<int>(std::floor(centre - support + 0.5)));
         k < std::min(n, static_cast<int>(std::floor(centre + support + 0.5))); ++k) {
      const double weight = filter((k + 0.5 - centre) / reduction);
      sum += weight * from[static_cast<size_t>(k)];
      weights += weight;
    }
    to.push_back(std::clamp(std::floor(sum / weights + 0.5), 0.0, 255.0));
  }
  return to;
}

using Plane = std::vector<std::vector<double>>;

Plane PillowPass(const Plane& from, int count, int how) {
  Plane to;
  for (const auto& line : from) to.push_back(PillowLine(line, count, how));
  return to;
}

Plane Transposed(const Plane& from) {
  Plane to(from[0].size(), std::vector<double>(from.size()));
  for (size_t y = 0; y < from.size(); ++y) {
    for (size_t x = 0; x < to.size(); ++x) to[x][y] = from[y][x];
  }
  return to;
}

// Along rows first, unless the height loses more than twice as many pixels as the width.
Plane PillowPasses(const Plane& from, int height, int width, int how) {
  const int lost_rows = static_cast<int>(from.size()) - height,
            lost_columns = static_cast<int>(from[0].size()) - width;
  if (lost_rows > 0 && lost_rows > 2 * lost_columns) {
    const Plane lower = Transposed(PillowPass(Transposed(from), height, how));
    return PillowPass(lower, width, how);
  }
  return Transposed(PillowPass(Transposed(PillowPass(from, width, how)), height, how));
}

Image PillowResize(const Image& image, const Box& box, int height, int width, int how) {
  Image result;
  result.Resize(height, width, image.channels);
  for (int c = 0; c < image.channels; ++c) {
    Plane plane;
    for (int y = 0; y < box.height; ++y) {
      plane.emplace_back();
      for (int x = 0; x < box.width; ++x)
        plane.back().push_back(image.row(box.y + y)[(box.x + x) * image.channels + c]);
    }
    const Plane resized = PillowPasses(plane, height, width, how);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x)
        result.row(y)[x * image.channels + c] =
            static_cast<uint8_t>(resized[static_cast<size_t>(y)][static_cast<size_t>(x)]);
    }
  }
  return result;
}

int64_t Differing(const Image& a, const Image& b) {
  int64_t differing = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) differing += a.pixels[i] != b.pixels[i];
  return differing;
}

struct TurboHandle {
  tjhandle handle;
  ~TurboHandle() { tjDestroy(handle); }
};

std::string TurboEncode(const Image& image, int subsampling, bool progressive) {
  const TurboHandle turbo{tjInitCompress()};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  REQUIRE(tjCompress2(turbo.handle, image.pixels.data(), image.width, 0, image.height, TJPF_RGB,
                      &bytes, &size, subsampling, 90, progressive ? TJFLAG_PROGRESSIVE : 0) == 0);
  const std::string result(reinterpret_cast<char*>(bytes), size);
  tjFree(bytes);
  return result;
}

Image TurboDecode(const std::string& bytes, int eighths, int channels) {
  const TurboHandle turbo{tjInitDecompress()};
  int width = 0, height = 0, subsampling = 0, space = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  REQUIRE(tjDecompressHeader3(turbo.handle, data, bytes.size(), &width, &height, &subsampling,
                              &space) == 0);
  const tjscalingfactor scale{eighths, 8};
  Image image;
  image.Resize(TJSCALED(height, scale), TJSCALED(width, scale), channels);
  REQUIRE(tjDecompress2(turbo.handle, data, bytes.size(), image.pixels.data(), image.width, 0,
                        image.height, channels == 3 ? TJPF_RGB : TJPF_GRAY,
                        TJFLAG_ACCURATEDCT) == 0);
  return image;
}

// How many pixels of the box differ between a part and the whole.
int Differing(const Image& whole, const Image& part, const Box& covers, const Box& box) {
  int differing = 0;
  for (int y = box.y; y < box.y + box.height; ++y) {
    const uint8_t* a = whole.row(y) + box.x * whole.channels;
    const uint8_t* b = part.row(y - covers.y) + (box.x - covers.x) * part.channels;
    differing += !std::equal(a, a + box.width * whole.channels, b);
  }
  return differing;
}

}  // namespace

TEST_CASE("resizing agrees with its definition") {
  for (const int channels : {1, 3}) {
    const Image image = Noise(37, 53, channels);
    for (const int how : {kNearest, kBilinear, kCubic, kArea}) {
      CAPTURE(channels);
      CAPTURE(how);
      // Rounding; the reference of area is a sum of points.
      const double bound = how == kArea ? 0.55 : 0.501;
      CHECK(Worst(image, {0, 0, 37, 53}, 37, 20, how) <= bound);
      CHECK(Worst(image, {5, 7, 30, 41}, 16, 16, how) <= bound);
      CHECK(Worst(image, {5, 7, 11, 13}, 29, 40, how) <= bound);  // enlarged
      CHECK(Worst(image, {36, 52, 1, 1}, 3, 5, how) <= bound);
      CHECK(Worst(image, {0, 0, 37, 1}, 5, 2, how) <= bound);
      CHECK(Worst(image, {0, 0, 37, 53}, 1, 1, how) <= bound);
    }
  }
}

TEST_CASE("antialiased resizing gives Pillow's pixels, by its definition in double") {
  for (const int channels : {1, 3}) {
    const Image image = Noise(37, 153, channels);
    for (const int how : {kBilinear, kCubic}) {
      for (const auto& [box, height, width] : {std::tuple<Box, int, int>{{0, 0, 37, 153}, 37, 20},
                                               {{0, 0, 37, 153}, 12, 50},
                                               {{0, 0, 37, 15}, 12, 8},    // columns first
                                               {{5, 7, 30, 141}, 3, 140},  // columns first
                                               {{5, 7, 30, 14}, 9, 30},    // columns first
                                               {{5, 7, 30, 141}, 16, 16},
                                               {{5, 7, 11, 13}, 29, 40},
                                               {{36, 152, 1, 1}, 3, 5},
                                               {{0, 0, 37, 1}, 5, 2},
                                               {{0, 0, 37, 153}, 1, 1}}) {
        CAPTURE(channels);
        CAPTURE(how);
        CAPTURE(height);
        CAPTURE(width);
        CropResize crop = CropResize::Whole(image.height, image.width);
        crop.Crop(box);
        REQUIRE(crop.Resize(height, width, {how, true}));
        Image result;
        Apply(crop, image, WholeOf(image), &result);
        // Sums in double and in fixed point are rounded differently only at ties.
        const Image expected = PillowResize(image, box, height, width, how);
        CHECK(LargestDifference(result, expected) <= 1);
        CHECK(Differing(result, expected) <= 2 + static_cast<int64_t>(result.pixels.size() / 200));
      }
    }
  }
}

// Computed by Pillow 13.0.
TEST_CASE("nearest takes Pillow's pixels where a center falls on the edge of two") {
  struct Case {
    int count;
    std::vector<int> expected;
  };
  for (const auto& [count, expected] :
       {Case{6, {0, 1, 1, 2, 2, 3}}, Case{14, {0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3}}}) {
    for (const bool mirrored : {false, true}) {
      for (const bool upright : {false, true}) {
        Image image;
        image.Resize(upright ? 1009 : 1, upright ? 1 : 1009, 1);
        for (size_t i = 0; i < 1009; ++i) image.pixels[i] = static_cast<uint8_t>(i - 1003);
        CropResize crop = CropResize::Whole(image.height, image.width);
        crop.Crop(upright ? Box{1003, 0, 4, 1} : Box{0, 1003, 1, 4});
        REQUIRE(crop.Resize(upright ? count : 1, upright ? 1 : count, kNearest));
        const int left_out = 2;
        crop.Crop(upright ? Box{left_out, 0, count - left_out, 1}
                          : Box{0, left_out, 1, count - left_out});
        (upright ? crop.upside_down : crop.mirrored) = mirrored;
        Image result;
        Apply(crop, image, WholeOf(image), &result);
        std::vector<int> taken(result.pixels.begin(), result.pixels.end());
        if (mirrored) std::reverse(taken.begin(), taken.end());
        CHECK(taken == std::vector<int>(expected.begin() + left_out, expected.end()));
      }
    }
  }
}

TEST_CASE("a tall image is resized along its columns first, as Pillow 13 does") {
  Image image;
  image.Resize(11, 3, 1);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(97 * i);
  const auto resized = [&image](int how) {
    CropResize crop = CropResize::Whole(11, 3);
    REQUIRE(crop.Resize(4, 2, {how, true}));
    Image result;
    Apply(crop, image, WholeOf(image), &result);
    return result.pixels;
  };
  CHECK(resized(kBilinear) == std::vector<uint8_t>{76, 145, 142, 106, 141, 129, 105, 167});
  CHECK(resized(kCubic) == std::vector<uint8_t>{69, 150, 149, 100, 141, 128, 99, 172});
}

TEST_CASE("a crop-resize gives the pixels of its steps one by one, and the numbers of its pixels") {
  const Image image = Noise(61, 83, 3);
  int cuts = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    uint64_t draw = 0;
    const auto below = [&](int n) {
      return static_cast<int>(PhiloxAt(7, i, 0, draw++) % static_cast<uint32_t>(n));
    };
    Image at = image, next;
    CropResize all = CropResize::Whole(61, 83);
    const auto both = [&](auto&& step) {
      CropResize one = CropResize::Whole(at.height, at.width);
      if (!step(&all)) return;
      REQUIRE(step(&one));
      Apply(one, at, WholeOf(at), &next);
      std::swap(at, next);
    };
    for (int steps = 0; steps < 5; ++steps) {
      const int kind = below(3), height = 1 + below(all.height()), width = 1 + below(all.width());
      if (kind == 0) {
        const Box box{below(all.height() - height + 1), below(all.width() - width + 1), height,
                      width};
        both([&](CropResize* crop) { return crop->Crop(box), true; });
      } else if (kind == 1) {
        const Resampling ways[] = {kNearest, kBilinear,         kCubic,        kArea,
                                   kAuto,    {kBilinear, true}, {kCubic, true}};
        const Resampling how = ways[below(7)];
        const int h = 1 + below(90), w = 1 + below(90);
        if (!all.mirrored && !all.upside_down)
          both([&](CropResize* crop) { return crop->Resize(h, w, how); });
      } else {
        const bool side = below(2) == 1;
        both([&](CropResize* crop) {
          return (side ? crop->mirrored : crop->upside_down) ^= true, true;
        });
      }
    }
    Image once;
    Apply(all, image, WholeOf(image), &once);
    REQUIRE(once.height == at.height);
    REQUIRE(once.width == at.width);
    CHECK(once.pixels == at.pixels);
    cuts += all.resized();

    const PixelLevels levels{{0.5f, 0.25f, 2.0f}, {1, 2, 3}, false};
    std::vector<float> planes(once.pixels.size()), expected(once.pixels.size());
    ApplyToPlanes(all, image, WholeOf(image), levels, planes.data());
    const size_t plane = expected.size() / 3;
    for (size_t p = 0; p < plane; ++p) {
      for (size_t c = 0; c < 3; ++c)
        expected[c * plane + p] = once.pixels[3 * p + c] * levels.scale[c] + levels.offset[c];
    }
    CHECK(planes == expected);

    // The part that the crop requests suffices.
    const Box needed = all.Needed();
    Image part;
    CropResize take = CropResize::Whole(61, 83);
    take.Crop(needed);
    Apply(take, image, WholeOf(image), &part);
    Apply(all, part, {61, 83, needed, 1}, &next);
    CHECK(next.pixels == once.pixels);
  }
  CHECK(cuts > 50);
}

TEST_CASE("a part of a JPEG has the pixels of the whole, in every subsampling and size") {
  for (const int subsampling :
       {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY, TJSAMP_440, TJSAMP_411}) {
    for (const bool progressive : {false, true}) {
      for (const auto& [height, width] : {std::pair{97, 131}, {64, 64}, {17, 300}}) {
        const std::string jpeg = TurboEncode(Blobs(height, width), subsampling, progressive);
        for (const int eighths : {8, 4, 2}) {
          for (const int channels : {3, 1}) {
            const Image whole = TurboDecode(jpeg, eighths, channels);
            ImageDecoder decoder;
            int wrong = 0;
            for (uint64_t i = 0; i < 12; ++i) {
              uint64_t draw = 0;
              const auto below = [&](int n) {
                return static_cast<int>(PhiloxAt(9, i, 1, draw++) % static_cast<uint32_t>(n));
              };
              const int h = 1 + below(height), w = 1 + below(width);
              const Box box{below(height - h + 1), below(width - w + 1), h, w};
              DecodeOptions options;
              options.channels = channels;
              options.exact = eighths == 8 && i % 2 == 0;
              options.part = [&](int, int) { return DecodeOptions::Part{box, eighths / 8.0}; };
              Image part;
              Frame frame;
              REQUIRE_FALSE(decoder.Decode(jpeg, options, &part, &frame).has_value());
              REQUIRE(frame.scale == eighths / 8.0);
              const double s = frame.scale;
              const int y = static_cast<int>(box.y * s), x = static_cast<int>(box.x * s);
              const Box reduced{
                  y, x, std::min(whole.height, static_cast<int>(std::ceil((box.y + h) * s))) - y,
                  std::min(whole.width, static_cast<int>(std::ceil((box.x + w) * s))) - x};
              wrong += Differing(whole, part, frame.covers, reduced);
            }
            CAPTURE(subsampling);
            CAPTURE(progressive);
            CAPTURE(height);
            CAPTURE(eighths);
            CAPTURE(channels);
            CHECK(wrong == 0);
          }
        }
      }
    }
  }
}
