// SPDX-License-Identifier: Apache-2.0
// Classes of pixels: how files say them, and that they move with their image.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/internal/mask_labels.h"
#include "mxtrain/io/mask_image.h"
#include "tests/support/augmented.h"
#include "tests/support/error_message.h"
#include "tests/support/image_bytes.h"
#include "tests/support/pipeline_data.h"

namespace mxtrain::test {
namespace {

using Chain = std::vector<TransformSpec>;
using Bytes = std::vector<uint8_t>;
using Texts = std::vector<std::string>;

Image Gray(int height, int width, Bytes pixels) {
  Image image;
  image.Resize(height, width, 1);
  image.pixels = std::move(pixels);
  return image;
}

constexpr int kGray = 0, kRgb = 2, kIndexed = 3, kRgba = 6;  // PNG's colour types

// A PNG of one row: `row` as it is stored.
std::string StoredPng(int type, int bits, int width, const Bytes& row) {
  const std::string palette("\x09\x09\x09\x09\x09\x09\x01\x02\x03\xff\0\0",
                            12);  // 0 and 1 look alike
  return Png(static_cast<uint32_t>(width), 1, bits, type,
             std::string(1, '\0') + std::string(row.begin(), row.end()), false,
             type == kIndexed ? PngChunk("PLTE", palette) : "");
}

// The classes, or the reason why there are none.
std::pair<Bytes, std::string> Decoded(const MaskCode& code, const std::string& bytes) {
  ImageDecoder decoder;
  Image classes;
  const auto refusal = code.Decode(bytes, &decoder, &classes);
  if (refusal) return {{}, refusal->reason};
  CHECK(classes.channels == 1);
  return {classes.pixels, ""};
}

}  // namespace

TEST_CASE("masks are read as the numbers that are stored") {
  const MaskCode code(4, {}, {"11"});
  CHECK(Decoded(code, StoredPng(kIndexed, 8, 4, {0, 1, 2, 3})).first == Bytes{0, 1, 2, 3});
  CHECK(Decoded(code, StoredPng(kIndexed, 2, 4, {0b00'01'10'11})).first == Bytes{0, 1, 2, 3});
  CHECK(Decoded(code, StoredPng(kGray, 1, 8, {0b01010011})).first == Bytes{0, 1, 0, 1, 0, 0, 1, 1});
  CHECK(Decoded(code, StoredPng(kGray, 8, 3, {3, 11, 255})).first == Bytes{3, kNoClass, kNoClass});
  CHECK(Decoded(code, StoredPng(kGray, 16, 2, {0, 2, 0, 11})).first == Bytes{2, kNoClass});
  CHECK(Decoded(code, StoredPng(kRgb, 8, 2, {2, 2, 2, 11, 11, 11})).first == Bytes{2, kNoClass});
  CHECK(Decoded(code, StoredPng(kRgba, 8, 2, {2, 2, 2, 0, 3, 3, 3, 255})).first == Bytes{2, 3});
  CHECK(Decoded(code, StoredPng(kGray, 8, 3, {3, 7, 0})).second ==
        "the mask has 7 at (1, 0), which is neither a class nor in mask_ignore");
  CHECK(Decoded(code, StoredPng(kGray, 16, 2, {0, 2, 1, 0})).second ==
        "the mask has 256 at (1, 0), which is neither a class nor in mask_ignore");
  CHECK(Decoded(code, StoredPng(kRgb, 8, 1, {1, 2, 3})).second ==
        "the mask has colours (at (0, 0)): say which class each is with mask_colours");
  CHECK(Decoded(code, EncodeJpeg(Gray(1, 1, {0}))).second.find("does not keep the numbers") !=
        std::string::npos);
  CHECK_FALSE(Decoded(code, "no image").second.empty());
  // Without names every number is a class.
  CHECK(Decoded(MaskCode(0, {}, {"0"}), StoredPng(kGray, 8, 3, {0, 77, 255})).first ==
        Bytes{kNoClass, 77, kNoClass});
  // What EncodePng writes with a palette.
  Palette palette{};
  for (int k = 0; k < 256; ++k) palette[static_cast<size_t>(k)] = {uint8_t(k), 0, uint8_t(255 - k)};
  const std::string indexed = EncodePng(Gray(2, 2, {0, 3, 2, 255}), palette);
  CHECK(Decoded(code, indexed).first == Bytes{0, 3, 2, kNoClass});
  CHECK(DecodeImage(indexed)->pixels == Bytes{0, 0, 255, 3, 0, 252, 2, 0, 253, 255, 0, 0});
}

TEST_CASE("masks in colours") {
  const MaskCode code(2, {"#010203", "#FF0000"}, {"#090909"});
  CHECK(Decoded(code, StoredPng(kIndexed, 8, 4, {2, 3, 0, 1})).first ==
        Bytes{0, 1, kNoClass, kNoClass});
  CHECK(Decoded(code, StoredPng(kRgb, 8, 2, {255, 0, 0, 1, 2, 3})).first == Bytes{1, 0});
  CHECK(Decoded(code, StoredPng(kRgb, 8, 2, {255, 0, 0, 1, 2, 4})).second ==
        "the mask has the colour #010204 at (1, 0), which is neither in mask_colours nor in "
        "mask_ignore");
}

TEST_CASE("codes of masks that make no sense") {
  const auto why_not = [](int64_t classes, const Texts& colours, const Texts& ignored) {
    return MessageOf([&] { MaskCode(classes, colours, ignored); });
  };
  CHECK(why_not(3, {"#000000"}, {}) == "mask_colours has 1 colours for 3 classes");
  CHECK(why_not(0, {"red"}, {}).find("mask_colours has 'red', which is no colour") == 0);
  CHECK(why_not(0, {"#00000g"}, {}).find("mask_colours has '#00000g'") == 0);
  CHECK(why_not(0, {"#000000", "#000000"}, {}).find("has a meaning already") != std::string::npos);
  CHECK(why_not(3, {}, {"2"}) == "mask_ignore has 2, which is one of the 3 classes (from 0)");
  CHECK(why_not(3, {}, {"256"}).find("expected numbers from 0 to 255") != std::string::npos);
  CHECK(why_not(3, {}, {"x"}).find("mask_ignore has 'x'") == 0);
  CHECK(why_not(256, {}, {}) == "masks have at most 255 classes, not 256");
}

TEST_CASE("what is seen of a file is what no step has cut off") {
  constexpr int kSize = 40;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    uint64_t draw = 0;
    const auto random = [&](double low, double high) {
      return low + (high - low) * (PhiloxAt(seed, 1, 2, draw++) % 10'000) / 10'000.0;
    };
    ImageOrigin origin(kSize, kSize + 10);
    struct Step {
      PointMap by;
      int height, width;
    };
    std::vector<Step> steps;
    for (int s = 0; s < 4; ++s) {
      const double angle = random(-1, 1), scale = random(0.6, 1.6);
      steps.push_back({{scale * std::cos(angle), -scale * std::sin(angle), random(-15, 25),
                        scale * std::sin(angle), scale * std::cos(angle), random(-15, 15)},
                       static_cast<int>(random(20, 60)),
                       static_cast<int>(random(20, 60))});
      origin.Moves(steps.back().by);
      origin.EndsAt(steps.back().height, steps.back().width);
    }
    int64_t seen = 0, wrong = 0;
    for (double y = 0.31; y < steps.back().height; y += 1) {
      const ImageOrigin::Interval interval = origin.SeenAt(y);
      for (double x = 0.27; x < steps.back().width; x += 1) {
        // Backwards, step by step.
        Point p{x, y};
        bool inside = true;
        for (size_t s = steps.size(); s-- > 0;) {
          inside =
              inside && p.x >= 0 && p.y >= 0 && p.x <= steps[s].width && p.y <= steps[s].height;
          p = steps[s].by.Inverse()(p);
        }
        inside = inside && p.x >= 0 && p.y >= 0 && p.x <= kSize + 10 && p.y <= kSize;
        seen += inside;
        wrong += inside != (interval.first <= x && x <= interval.last) ? 1 : 0;
        const Point file = origin.map().Inverse()({x, y});
        CHECK(std::hypot(file.x - p.x, file.y - p.y) < 1e-6);
      }
    }
    CAPTURE(seed);
    CHECK(wrong == 0);
    if (seen == 0) CHECK(origin.seen().size() < 3);
  }
}

TEST_CASE("classes move with the pixels of their image, and nothing has a class where padding is") {
  constexpr int kHeight = 96, kWidth = 120, kBlock = 12;
  // Blocks of a class each; the image shows class k as 40 * (k + 1), so that 0 is padding alone.
  Image classes = Gray(kHeight, kWidth, Bytes(kHeight * kWidth));
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x)
      classes.row(y)[x] =
          static_cast<uint8_t>(PhiloxAt(3, 5, uint64_t(y / kBlock), uint64_t(x / kBlock)) % 5);
  }
  Image image = classes;
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(40 * (value + 1));
  const std::vector<std::pair<Chain, bool>> chains = {
      // Whole pixels: exact.
      {{}, true},
      {{{"flip", {{"p", "1"}}}}, true},
      {{{"center_crop", {{"", "48"}}}}, true},
      {{{"random_crop", {{"", "(60, 44)"}, {"pad", "20"}}}}, true},
      {{{"resize", {{"", "(48, 60)"}, {"interpolation", "nearest"}}}}, true},
      {{{"resize", {{"", "70"}, {"interpolation", "nearest"}}}}, false},
      {{{"rotate", {{"", "40"}, {"interpolation", "nearest"}}}}, false},
      {{{"scale", {{"", "0.5, 1.5"}, {"interpolation", "nearest"}}},
        {"shear", {{"", "20"}, {"interpolation", "nearest"}}},
        {"random_crop", {{"", "64"}, {"pad", "10"}}},
        {"flip", {}},
        {"resize", {{"", "90"}, {"interpolation", "nearest"}}}},
       false}};
  FieldSpec spec{"mask", FieldKind::kMask, TShape()};
  for (size_t c = 0; c < chains.size(); ++c) {
    for (int64_t index = 0; index < 12; ++index) {
      const Augmenter augmenter(chains[c].first, 1);
      ImageOrigin origin(kHeight, kWidth);
      Image moved, scratch;
      const auto steps = augmenter.Begin(kHeight, kWidth, RandomStream(1, 0, index), 0,
                                         augmenter.size(), {/*recolours=*/false, &origin});
      augmenter.ToImage(steps, image, {kHeight, kWidth, {0, 0, kHeight, kWidth}, 1}, &moved,
                        &scratch);
      std::vector<float> labels(moved.pixels.size());
      REQUIRE_FALSE(WriteMask(spec, classes, origin, {moved.height, moved.width}, labels.data()));
      int64_t differ = 0;
      for (size_t i = 0; i < labels.size(); ++i) {
        const float shown =
            moved.pixels[i] == 0 ? kNoClassLabel : static_cast<float>(moved.pixels[i]) / 40 - 1;
        differ += labels[i] != shown ? 1 : 0;
      }
      CAPTURE(c);
      CAPTURE(index);
      // Steps that each take the nearest pixel differ from one step at the edges of blocks.
      CHECK(differ <= (chains[c].second ? 0 : std::ssize(labels) / 8));
    }
  }
  std::vector<float> labels(4);
  CHECK(WriteMask(spec, classes, ImageOrigin(kHeight, kWidth + 1), {2, 2}, labels.data())->reason ==
        "the image has 121x96 pixels, but its mask 'mask' has 120x96");
  ImageOrigin flat(kHeight, kWidth);
  flat.Moves({0, 0, 1, 0, 1, 0});  // an axis is lost
  CHECK_FALSE(WriteMask(spec, classes, flat, {2, 2}, labels.data()));
  CHECK(labels == std::vector<float>(4, kNoClassLabel));
}

TEST_CASE("masks in a parallel folder: suffix, cache, what does not fit") {
  const TempDir dir;
  const auto block = [](int k) { return Gray(8, 10, Bytes(80, static_cast<uint8_t>(k))); };
  std::filesystem::create_directories(dir.path("images"));
  std::filesystem::create_directories(dir.path("masks"));
  for (int k = 0; k < 3; ++k) {
    dir.Write(format("images/{}.png", k), EncodePng(block(100 * k)));
    dir.Write(format("masks/{}_L.png", k), EncodePng(block(k == 2 ? 9 : k)));
  }
  const Kwargs params = {{"path", dir.path("images")},    {"label", "mask"},
                         {"targets", dir.path("masks")},  {"targets_suffix", "_L"},
                         {"mask_classes", "(sky, road)"}, {"mask_ignore", "9"}};
  Runtime runtime = MakeRuntime();
  const std::shared_ptr<const Source> source = MakeSource("image_folder", params);
  CHECK(source->class_names() == Texts{"sky", "road"});
  CHECK(source->label_fields()[0].kind == FieldKind::kMask);
  for (const char* cache : {"none", "ram"}) {
    const auto iter =
        NewPipeline(runtime, source, {{"center_crop", {{"", "(6, 4)"}}}},
                    Param({{"batch_size", "4"}, {"mode", "evaluation"}, {"cache", cache}}));
    CHECK(iter->provide_label()[0].shape == TShape{4, 6, 4});
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      DataBatch batch;
      iter->Reset(epoch);
      REQUIRE(iter->Next(&batch));
      CHECK(batch.bad.empty());
      const std::vector<float> labels = batch.label[0].ToVector();
      CHECK(batch.count == 3);
      for (size_t i = 0; i < 3 * 24; ++i)
        CHECK(labels[i] == std::array<float, 3>{0, 1, kNoClassLabel}[i / 24]);
    }
  }
  dir.Write("masks/1_L.png", EncodePng(Gray(10, 8, Bytes(80))));
  dir.Write("masks/2_L.png", EncodePng(block(5)));
  const auto iter =
      NewPipeline(runtime, source, {}, Param({{"batch_size", "4"}, {"mode", "evaluation"}}));
  DataBatch batch;
  REQUIRE(iter->Next(&batch));
  REQUIRE(batch.bad.size() == 2);
  CHECK(batch.bad[0].reason == "the image has 10x8 pixels, but its mask 'label' has 8x10");
  CHECK(batch.bad[1].reason ==
        "its mask: the mask has 5 at (0, 0), which is neither a class nor in mask_ignore");
  Kwargs without = params;
  std::erase_if(without, [](const auto& p) { return p.first == "targets"; });
  CHECK(MessageOf([&] { MakeSource("image_folder", without); }) ==
        "label = mask: image_folder has no masks of its own; give the folder of the masks as "
        "targets");
  CHECK(MessageOf([&] {
          MakeSource("image_folder", {{"path", dir.path("images")}, {"mask_ignore", "9"}});
        }) == "mask_classes, mask_colours and mask_ignore need label = mask");
}

}  // namespace mxtrain::test
