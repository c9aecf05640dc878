// SPDX-License-Identifier: Apache-2.0
// gaussian_noise.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

struct NoiseParam : Parameter<NoiseParam> {
  double std;
  static void Declare(Fields<NoiseParam>& f) {
    f.Add("std", &NoiseParam::std)
        .Required()
        .Range(0, 10)
        .Help("standard deviation of the noise, where black is 0 and white is 1");
  }
};

// Two numbers at a time, of the two uniform ones that Box and Muller make them of.
class GaussianNoise final : public Transform {
 public:
  explicit GaussianNoise(const NoiseParam& param) : std_(255 * param.std) {}

  bool draws() const override { return true; }
  void Apply(Image* image, Image*, RandomStream* random, const ImagePart& part) const override {
    const size_t count = image->pixels.size();
    if (!part.recolours) return random->Skip(static_cast<int64_t>(count + count % 2));
    for (size_t i = 0; i < count; i += 2) {
      const double radius = std_ * std::sqrt(-2 * std::log(1 - double{random->Uniform()})),
                   angle = 2 * std::numbers::pi * double{random->Uniform()};
      Add(radius * std::cos(angle), &image->pixels[i]);
      if (i + 1 < count) Add(radius * std::sin(angle), &image->pixels[i + 1]);
    }
  }
  ImageSize OutputSize(ImageSize input) const override { return input; }

 private:
  static void Add(double noise, uint8_t* value) {
    *value = static_cast<uint8_t>(std::clamp(std::nearbyint(*value + noise), 0.0, 255.0));
  }

  double std_;
};

}  // namespace

std::vector<detail::TransformEntry> detail::NoiseTransforms() {
  return {MakeTransformEntry<GaussianNoise, NoiseParam>(
      "gaussian_noise", "normal noise on every pixel and channel, as of a dim photo")};
}

}  // namespace mxtrain::io
