// SPDX-License-Identifier: Apache-2.0
// The pixels of every chain are those of earlier versions, bit for bit: a run that is continued or
// repeated sees the same batches. The checksums were taken before transforms moved coordinates.
#include <doctest/doctest.h>

#include "mxtrain/base/file.h"
#include "mxtrain/base/philox.h"
#include "tests/support/augmented.h"
#include "tests/support/pipeline_data.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

Image Speckled(int height, int width, int channels) {
  Image image;
  image.Resize(height, width, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(PhiloxAt(3, 1, 4, i) % 200 + i % 50);
  return image;
}

template <typename T>
void AddBytes(const std::vector<T>& values, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

uint32_t BitsOf(const std::vector<TransformSpec>& specs, int channels) {
  std::string bytes;
  for (int64_t i = 0; i < 12; ++i)
    AddBytes(Augmented(specs, Speckled(40, 53, channels), i, i % 3).pixels, &bytes);
  return Crc32(bytes);
}

struct RecordedChain {
  std::vector<TransformSpec> specs;
  uint32_t rgb, gray;
};

const std::vector<RecordedChain>& RecordedChains() {
  static const std::vector<RecordedChain> chains = {
      {{{"resize", {{"", "20"}}}}, 0x4fc49725, 0x3ee1953a},
      {{{"resize", {{"", "(31, 17)"}, {"interpolation", "bicubic"}, {"antialias", "True"}}}},
       0xbf19ee84,
       0xa016e0c1},
      {{{"center_crop", {{"", "24"}}}, {"flip", {}}}, 0xe36df1f5, 0xd03cb71d},
      {{{"flip", {}}, {"flip", {{"direction", "vertical"}}}, {"random_crop", {{"", "32"}}}},
       0xa1724730,
       0xda85f242},
      {{{"random_crop", {{"", "36"}, {"pad", "4"}, {"fill", "9"}}}, {"flip", {}}},
       0x8f72c5c3,
       0x908eb0eb},
      {{{"random_resized_crop", {{"", "24"}}}, {"flip", {}}}, 0x1c49eeb4, 0x8aebfd3f},
      {{{"rotate", {{"", "20"}}}}, 0xb40c220d, 0x3942f11b},
      {{{"scale", {{"", "0.7, 1.4"}, {"fill_mode", "edge"}}}}, 0x22199f81, 0xb7b497f9},
      {{{"aspect", {{"", "0.7, 1.4"}, {"fill_mode", "reflect"}}}}, 0x756fa959, 0xa15c7c3b},
      {{{"shear", {{"", "15"}, {"interpolation", "nearest"}, {"p", "0.5"}}}},
       0xd6163659,
       0xec5a6a92},
      {{{"brightness", {{"", "0.3"}}}, {"contrast", {{"", "0.3"}}}, {"lighting", {}}},
       0x0972f19c,
       0xe091d5bd},
      {{{"saturation", {{"", "0.5"}}}, {"hue", {{"", "0.2"}}}}, 0x7d9cddb5, 0xc24a0bd2},
      {{{"trivial_augment", {}}}, 0x82c8d854, 0x8452912a},
      {{{"rand_augment", {{"n", "3"}, {"interpolation", "bilinear"}}}}, 0xe840e5a4, 0xd3409c10},
      {{{"random_erasing", {{"p", "0.8"}}}, {"random_erasing", {{"noise", "True"}}}},
       0xb3fd3d32,
       0xb0115858},
      {{{"random_resized_crop", {{"", "32"}}},
        {"flip", {}},
        {"rotate", {{"", "10"}}},
        {"brightness", {{"", "0.2"}}},
        {"rand_augment", {}},
        {"random_crop", {{"", "28"}, {"pad", "2"}}},
        {"shear", {{"", "5"}}},
        {"random_erasing", {}},
        {"resize", {{"", "(24, 20)"}}},
        {"flip", {{"direction", "vertical"}}}},
       0x0d3a3129,
       0x216250bd},
  };
  return chains;
}

}  // namespace

TEST_CASE("chains keep their bits") {
  int number = 0;
  for (const RecordedChain& chain : RecordedChains()) {
    const uint32_t rgb = BitsOf(chain.specs, 3), gray = BitsOf(chain.specs, 1);
    INFO(format("chain {}: {:#010x}, {:#010x}", number, rgb, gray));
    ++number;
    CHECK(rgb == chain.rgb);
    CHECK(gray == chain.gray);
  }
}

TEST_CASE("first batches keep their bits, from files, cached or not, and mixed") {
  const TempDir dir;
  for (int i = 0; i < 12; ++i) {
    dir.Write(format("{}/{:03}.png", i % 2 ? "odd" : "even", i),
              EncodePng(Speckled(30 + i % 3, 37 - i % 4, 3)));
  }
  const std::vector<TransformSpec> specs = {{"resize", {{"", "28"}}},
                                            {"random_crop", {{"", "24"}}},
                                            {"flip", {}},
                                            {"rotate", {{"", "15"}}},
                                            {"contrast", {{"", "0.2"}}},
                                            {"trivial_augment", {}},
                                            {"normalize", {{"mean", "0.4"}, {"std", "0.25"}}}};
  const auto bits = [&](const Kwargs& more) {
    Kwargs kwargs = {{"batch_size", "4"}, {"shuffle", "True"}, {"seed", "5"}, {"workers", "2"}};
    kwargs.insert(kwargs.end(), more.begin(), more.end());
    Runtime runtime = MakeRuntime();
    const auto iter = NewPipeline(runtime, Folder(dir), specs, Param(kwargs));
    std::string bytes;
    for (const int64_t epoch : {0, 1}) {
      iter->Reset(epoch);
      for (const Copied& batch : RunOut(*iter)) {
        AddBytes(batch.data, &bytes);
        AddBytes(batch.label, &bytes);
      }
    }
    return Crc32(bytes);
  };
  const uint32_t plain = bits({});
  INFO(format("{:#010x}", plain));
  CHECK(plain == 0x6157b9fc);
  CHECK(bits({{"cache", "ram"}}) == plain);
  const uint32_t mixed = bits({{"soft_labels", "2"}, {"mixup", "0.4"}, {"cutmix", "1"}});
  INFO(format("{:#010x}", mixed));
  CHECK(mixed == 0xa20e0657);
}
