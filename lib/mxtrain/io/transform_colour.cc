// SPDX-License-Identifier: Apache-2.0
// brightness, contrast, saturation, hue and lighting: each a linear map of the channels, rounded to
// 8 bits.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "mxtrain/io/crop_resize.h"
#include "mxtrain/io/internal/pixels.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

using ColourMatrix = float[3][4];

// `amount` a: a factor from max(0, 1 - a) to 1 + a.
struct AmountParam : Parameter<AmountParam> {
  double amount;
  static void Declare(Fields<AmountParam>& f) {
    f.Add("amount", &AmountParam::amount)
        .Required()
        .Range(0, 10)
        .Help("a: a factor from 1 - a (at least 0) to 1 + a is drawn");
  }
};

struct HueParam : Parameter<HueParam> {
  double amount;
  static void Declare(Fields<HueParam>& f) {
    f.Add("amount", &HueParam::amount)
        .Required()
        .Range(0, 0.5)
        .Help("a: a hue rotation from -a to a of the colour circle is drawn");
  }
};

struct LightingParam : Parameter<LightingParam> {
  double std;
  static void Declare(Fields<LightingParam>& f) {
    f.Add("std", &LightingParam::std)
        .Default(0.1)
        .Range(0, 10)
        .Help("standard deviation of the three random numbers");
  }
};

double DrawFactor(double amount, RandomStream* random) {
  return random->Uniform(std::max(0.0, 1 - amount), 1 + amount);
}

// `Kind::kDraws`: how many numbers it draws.
template <typename Param, typename Kind>
class Colouring final : public Transform {
 public:
  explicit Colouring(const Param& param) : param_(param) {}
  bool draws() const override { return true; }
  void Apply(Image* image, Image*, RandomStream* random, const ImagePart& part) const override {
    if (!part.recolours) return random->Skip(Kind::kDraws);
    Kind::Apply(param_, image, random);
  }
  ImageSize OutputSize(ImageSize input) const override { return input; }

 private:
  Param param_;
};

struct Brightness {
  static constexpr int64_t kDraws = 1;
  static void Apply(const AmountParam& param, Image* image, RandomStream* random) {
    Stretch(DrawFactor(param.amount, random), 0, image);
  }
};

struct Contrast {
  static constexpr int64_t kDraws = 1;
  static void Apply(const AmountParam& param, Image* image, RandomStream* random) {
    ScaleContrast(DrawFactor(param.amount, random), image);
  }
};

struct Saturation {
  static constexpr int64_t kDraws = 1;
  static void Apply(const AmountParam& param, Image* image, RandomStream* random) {
    ScaleSaturation(DrawFactor(param.amount, random), image);
  }
};

// A rotation of the two colour axes of YIQ, as in MXNet; luma is unchanged.
struct Hue {
  static constexpr int64_t kDraws = 1;
  static void Apply(const HueParam& param, Image* image, RandomStream* random) {
    constexpr double kToYiq[3][3] = {
        {0.299, 0.587, 0.114}, {0.596, -0.274, -0.321}, {0.211, -0.523, 0.311}};
    constexpr double kFromYiq[3][3] = {{1, 0.956, 0.621}, {1, -0.272, -0.647}, {1, -1.107, 1.705}};
    const double angle = 2 * std::numbers::pi * random->Uniform(-param.amount, param.amount),
                 u = std::cos(angle), w = std::sin(angle);
    if (image->channels != 3) return;
    const double turn[3][3] = {{1, 0, 0}, {0, u, -w}, {0, w, u}};
    ColourMatrix m = {};
    for (int c = 0; c < 3; ++c) {
      for (int k = 0; k < 3; ++k) {
        double sum = 0;
        for (int i = 0; i < 3; ++i) {
          for (int j = 0; j < 3; ++j) sum += kFromYiq[c][i] * turn[i][j] * kToYiq[j][k];
        }
        m[c][k] = static_cast<float>(sum);
      }
    }
    MixChannels(m, image);
  }
};

// Noise along the principal axes of natural colours (Krizhevsky, Sutskever, Hinton, "ImageNet
// classification with deep convolutional neural networks", 2012): the eigenvectors of ImageNet's
// pixels, each by its eigenvalue and a normal number.
struct Lighting {
  static constexpr int64_t kDraws = 6;
  static void Apply(const LightingParam& param, Image* image, RandomStream* random) {
    constexpr double kValues[3] = {55.46, 4.794, 1.148};  // for pixels of 0 .. 255
    constexpr double kVectors[3][3] = {
        {-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}};
    double drawn[3];
    for (double& number : drawn) number = param.std * random->Normal();
    double offset[3] = {};
    for (int c = 0; c < 3; ++c) {
      for (int k = 0; k < 3; ++k) offset[c] += kVectors[c][k] * kValues[k] * drawn[k];
    }
    if (image->channels != 3)
      return Stretch(1, kLuma[0] * offset[0] + kLuma[1] * offset[1] + kLuma[2] * offset[2], image);
    ColourMatrix m = {};
    for (int c = 0; c < 3; ++c) m[c][c] = 1, m[c][3] = static_cast<float>(offset[c]);
    MixChannels(m, image);
  }
};

}  // namespace

std::vector<detail::TransformEntry> detail::ColourTransforms() {
  return {MakeTransformEntry<Colouring<AmountParam, Brightness>, AmountParam>(
              "brightness", "lighter or darker, by a random factor"),
          MakeTransformEntry<Colouring<AmountParam, Contrast>, AmountParam>(
              "contrast", "more or less contrast, by a random factor"),
          MakeTransformEntry<Colouring<AmountParam, Saturation>, AmountParam>(
              "saturation", "more or less colour, by a random factor"),
          MakeTransformEntry<Colouring<HueParam, Hue>, HueParam>(
              "hue", "rotates the hue, by a random angle"),
          MakeTransformEntry<Colouring<LightingParam, Lighting>, LightingParam>(
              "lighting", "colour noise of changing light (AlexNet's)")};
}

}  // namespace mxtrain::io
