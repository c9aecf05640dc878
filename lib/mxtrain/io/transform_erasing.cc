// SPDX-License-Identifier: Apache-2.0
// random_erasing (Zhong et al., "Random erasing data augmentation", AAAI 2020).
#include <algorithm>
#include <cmath>

#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

struct ErasingParam : Parameter<ErasingParam> {
  double p;
  std::vector<double> area, aspect;
  int fill;
  bool noise;
  static void Declare(Fields<ErasingParam>& f) {
    f.Add("p", &ErasingParam::p).Default(0.5).Range(0, 1).Help("probability");
    f.Add("area", &ErasingParam::area)
        .Default({0.02, 1.0 / 3})
        .Help("minimum and maximum fraction of the image's area");
    f.Add("aspect", &ErasingParam::aspect)
        .Default({0.3, 1 / 0.3})
        .Help("minimum and maximum height / width of that part");
    f.Add("fill", &ErasingParam::fill).Default(0).Range(0, 255).Help("value of the erased pixels");
    f.Add("noise", &ErasingParam::noise).Default(false).Help("random values instead of fill");
  }
};

class RandomErasing final : public Transform {
 public:
  explicit RandomErasing(const ErasingParam& param)
      : param_(param),
        area_(detail::ParseRange(param.area, "random_erasing", "area", 0, 1)),
        aspect_(detail::ParseRange(param.aspect, "random_erasing", "aspect", 0.001, 1000)) {}

  bool draws() const override { return true; }
  void Apply(Image* image, Image*, RandomStream* random, const ImagePart& part) const override {
    if (!random->Chance(param_.p)) return;
    constexpr int kTries = 10;
    for (int i = 0; i < kTries; ++i) {
      const double area = random->Uniform(area_.low, area_.high) * image->height * image->width;
      const double aspect =
          std::exp(random->Uniform(std::log(aspect_.low), std::log(aspect_.high)));
      const auto h = static_cast<int>(std::lround(std::sqrt(area * aspect))),
                 w = static_cast<int>(std::lround(std::sqrt(area / aspect)));
      if (h < 1 || w < 1 || h > image->height || w > image->width) continue;
      const auto y = static_cast<int>(random->Below(image->height - h + 1)),
                 x = static_cast<int>(random->Below(image->width - w + 1));
      if (!part.recolours) return SkipNoise(int64_t{h} * w * image->channels, random);
      return Erase({y, x, h, w}, image, random);
    }
  }
  ImageSize OutputSize(ImageSize input) const override { return input; }

 private:
  void SkipNoise(int64_t numbers, RandomStream* random) const {
    if (param_.noise) random->Skip(numbers);
  }
  void Erase(const Box& box, Image* image, RandomStream* random) const {
    for (int y = box.y; y < box.y + box.height; ++y) {
      uint8_t* row = image->row(y) + box.x * image->channels;
      uint8_t* const end = row + box.width * image->channels;
      if (param_.noise) {
        std::generate(row, end, [&] { return static_cast<uint8_t>(random->Below(256)); });
      } else {
        std::fill(row, end, static_cast<uint8_t>(param_.fill));
      }
    }
  }

  ErasingParam param_;
  detail::NumberRange area_, aspect_;
};

}  // namespace

std::vector<detail::TransformEntry> detail::ErasingTransforms() {
  return {MakeTransformEntry<RandomErasing, ErasingParam>("random_erasing", "erases a random box")};
}

}  // namespace mxtrain::io
