// SPDX-License-Identifier: Apache-2.0
// trivial_augment (Mueller and Hutter, arXiv 2103.10158) and rand_augment (Cubuk et al., arXiv
// 1909.13719): operations drawn from one list, with magnitudes in 31 bins. The lists are
// torchvision's: TrivialAugmentWide and RandAugment.
#include <cmath>
#include <numbers>

#include "mxtrain/io/internal/geometry.h"
#include "mxtrain/io/internal/pixels.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

constexpr int kBins = 31;

enum class Operation {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kSaturation,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize
};

// Magnitudes from the first bin to the last; if `signed`, the sign is random.
struct MagnitudeRange {
  Operation operation;
  double first = 0, last = 0;
  bool is_signed = false;
};
using MagnitudeRanges = MagnitudeRange[14];

// Translations in pixels, rotations in degrees; factors of brightness and the like are 1 +
// magnitude.
constexpr MagnitudeRanges kTrivial = {{Operation::kIdentity},
                                      {Operation::kShearX, 0, 0.99, true},
                                      {Operation::kShearY, 0, 0.99, true},
                                      {Operation::kTranslateX, 0, 32, true},
                                      {Operation::kTranslateY, 0, 32, true},
                                      {Operation::kRotate, 0, 135, true},
                                      {Operation::kBrightness, 0, 0.99, true},
                                      {Operation::kSaturation, 0, 0.99, true},
                                      {Operation::kContrast, 0, 0.99, true},
                                      {Operation::kSharpness, 0, 0.99, true},
                                      {Operation::kPosterize, 8, 2},
                                      {Operation::kSolarize, 255, 0},
                                      {Operation::kAutoContrast},
                                      {Operation::kEqualize}};

constexpr double kShift = 150.0 / 331;  // of the image's width or height
constexpr MagnitudeRanges kRandom = {{Operation::kIdentity},
                                     {Operation::kShearX, 0, 0.3, true},
                                     {Operation::kShearY, 0, 0.3, true},
                                     {Operation::kTranslateX, 0, kShift, true},
                                     {Operation::kTranslateY, 0, kShift, true},
                                     {Operation::kRotate, 0, 30, true},
                                     {Operation::kBrightness, 0, 0.9, true},
                                     {Operation::kSaturation, 0, 0.9, true},
                                     {Operation::kContrast, 0, 0.9, true},
                                     {Operation::kSharpness, 0, 0.9, true},
                                     {Operation::kPosterize, 8, 4},
                                     {Operation::kSolarize, 255, 0},
                                     {Operation::kAutoContrast},
                                     {Operation::kEqualize}};

bool MovesPixels(Operation operation) {
  return operation >= Operation::kShearX && operation <= Operation::kRotate;
}

struct Filling {
  uint8_t value;
  bool nearest;
};

void Perform(Operation operation, double magnitude, const Filling& filling, const ImagePart& part,
             Image* image, Image* scratch) {
  const auto warp = [&](const Affine& affine) {
    Warp(affine, filling.nearest, {Outside::kConstant, filling.value}, image, scratch);
    part.Moves(affine.Map(image->height, image->width));
  };
  if (!part.recolours && !MovesPixels(operation)) return;
  const double angle = magnitude * std::numbers::pi / 180;
  switch (operation) {
    case Operation::kIdentity:
      return;
    case Operation::kShearX:
      return warp({{{1, magnitude}, {0, 1}}, {0, 0}});
    case Operation::kShearY:
      return warp({{{1, 0}, {magnitude, 1}}, {0, 0}});
    case Operation::kTranslateX:
      return warp({{{1, 0}, {0, 1}}, {-magnitude, 0}});
    case Operation::kTranslateY:
      return warp({{{1, 0}, {0, 1}}, {0, -magnitude}});
    case Operation::kRotate:
      return warp(
          {{{std::cos(angle), -std::sin(angle)}, {std::sin(angle), std::cos(angle)}}, {0, 0}});
    case Operation::kBrightness:
      return Stretch(1 + magnitude, 0, image);
    case Operation::kSaturation:
      return ScaleSaturation(1 + magnitude, image);
    case Operation::kContrast:
      return ScaleContrast(1 + magnitude, image);
    case Operation::kSharpness:
      return ScaleSharpness(1 + magnitude, image, scratch);
    case Operation::kPosterize:
      return Posterize(static_cast<int>(std::nearbyint(magnitude)), image);
    case Operation::kSolarize:
      return Solarize(magnitude, image);
    case Operation::kAutoContrast:
      return AutoContrast(image);
    case Operation::kEqualize:
      return Equalize(image);
  }
}

template <typename P>
void DeclareFilling(Fields<P>& f) {
  f.Add("fill", &P::fill).Default(0).Range(0, 255).Help("value of pixels outside the image");
  f.Add("interpolation", &P::interpolation)
      .Enum({{"nearest", kNearest}, {"bilinear", kBilinear}})
      .Default(kNearest)
      .Help("interpolation between pixels");
}

struct TrivialAugmentParam : Parameter<TrivialAugmentParam> {
  int fill, interpolation;
  static void Declare(Fields<TrivialAugmentParam>& f) { DeclareFilling(f); }
};

struct RandAugmentParam : Parameter<RandAugmentParam> {
  int n, magnitude, fill, interpolation;
  static void Declare(Fields<RandAugmentParam>& f) {
    f.Add("n", &RandAugmentParam::n)
        .Default(2)
        .Range(1, 16)
        .Help("number of operations, applied in sequence");
    f.Add("magnitude", &RandAugmentParam::magnitude)
        .Default(9)
        .Range(0, kBins - 1)
        .Help("strength of each, as a bin");
    DeclareFilling(f);
  }
};

// One operation of the list, at a given or random bin.
class Augment : public Transform {
 public:
  explicit Augment(const Filling& filling) : filling_(filling) {}
  bool draws() const override { return true; }
  ImageSize OutputSize(ImageSize input) const override { return input; }

 protected:
  struct Drawn {
    Operation operation;
    double magnitude;
  };
  static Drawn Draw(const MagnitudeRanges& list, int bin, RandomStream* random) {
    const MagnitudeRange& entry = list[random->Below(std::size(list))];
    const double magnitude = entry.first + (entry.last - entry.first) * bin / (kBins - 1);
    const bool negative = random->Chance(0.5) && entry.is_signed;
    return {entry.operation, negative ? -magnitude : magnitude};
  }
  Filling filling_;
};

class TrivialAugment final : public Augment {
 public:
  explicit TrivialAugment(const TrivialAugmentParam& param)
      : Augment({static_cast<uint8_t>(param.fill), param.interpolation == kNearest}) {}
  void Apply(Image* image, Image* scratch, RandomStream* random,
             const ImagePart& part) const override {
    const auto bin = static_cast<int>(random->Below(kBins));
    const Drawn drawn = Draw(kTrivial, bin, random);
    Perform(drawn.operation, drawn.magnitude, filling_, part, image, scratch);
  }
};

class RandAugment final : public Augment {
 public:
  explicit RandAugment(const RandAugmentParam& param)
      : Augment({static_cast<uint8_t>(param.fill), param.interpolation == kNearest}),
        n_(param.n),
        bin_(param.magnitude) {}
  void Apply(Image* image, Image* scratch, RandomStream* random,
             const ImagePart& part) const override {
    for (int i = 0; i < n_; ++i) {
      Drawn drawn = Draw(kRandom, bin_, random);
      if (drawn.operation == Operation::kTranslateX) drawn.magnitude *= image->width;
      if (drawn.operation == Operation::kTranslateY) drawn.magnitude *= image->height;
      Perform(drawn.operation, drawn.magnitude, filling_, part, image, scratch);
    }
  }

 private:
  int n_, bin_;
};

}  // namespace

std::vector<detail::TransformEntry> detail::AugmentTransforms() {
  return {MakeTransformEntry<TrivialAugment, TrivialAugmentParam>(
              "trivial_augment", "one operation of 14 at a random strength (TrivialAugmentWide)"),
          MakeTransformEntry<RandAugment, RandAugmentParam>(
              "rand_augment", "several of 14 operations at one strength (RandAugment)")};
}

}  // namespace mxtrain::io
