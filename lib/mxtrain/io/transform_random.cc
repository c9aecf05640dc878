// SPDX-License-Identifier: Apache-2.0
// flip, random_crop and random_resized_crop.
#include <algorithm>
#include <cmath>

#include "mxtrain/io/internal/geometry.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

struct FlipParam : Parameter<FlipParam> {
  enum Direction { kHorizontal, kVertical };
  double p;
  int direction;
  static void Declare(Fields<FlipParam>& f) {
    f.Add("p", &FlipParam::p).Default(0.5).Range(0, 1).Help("probability");
    f.Add("direction", &FlipParam::direction)
        .Enum({{"horizontal", kHorizontal}, {"vertical", kVertical}})
        .Default(kHorizontal)
        .Help("horizontal swaps left and right");
  }
};

class Flip final : public detail::CropResizeTransform {
 public:
  explicit Flip(const FlipParam& param) : param_(param) {}

  bool draws() const override { return true; }
  bool Fold(CropResize* crop, RandomStream* random) const override {
    bool& side = param_.direction == FlipParam::kHorizontal ? crop->mirrored : crop->upside_down;
    if (random->Chance(param_.p)) side = !side;
    return true;
  }
  ImageSize OutputSize(ImageSize input) const override { return input; }

 private:
  FlipParam param_;
};

struct RandomCropParam : Parameter<RandomCropParam> {
  TShape size;
  int pad, fill;
  static void Declare(Fields<RandomCropParam>& f) {
    f.Add("size", &RandomCropParam::size)
        .Required()
        .Help("side of a square, or (height, width); a smaller image is enlarged first");
    f.Add("pad", &RandomCropParam::pad)
        .Default(0)
        .Range(0, 65535)
        .Help("pixels added on each side before");
    f.Add("fill", &RandomCropParam::fill)
        .Default(0)
        .Range(0, 255)
        .Help("value of the added pixels");
  }
};

class RandomCrop final : public detail::CropResizeTransform {
 public:
  explicit RandomCrop(const RandomCropParam& param)
      : size_(ParseSize(param.size, "random_crop")), pad_(param.pad), fill_(param.fill) {}

  bool draws() const override { return true; }
  // Position relative to the image inside the padding, which is not part of the crop.
  bool Fold(CropResize* crop, RandomStream* random) const override {
    if (pad_ > 0 || !CoverAtLeast(size_.height, size_.width, "random_crop", crop)) return false;
    crop->Crop(Place(crop->height(), crop->width(), random));
    return true;
  }
  void Apply(Image* image, Image* scratch, RandomStream* random,
             const ImagePart& part) const override {
    if (pad_ == 0) return CropResizeTransform::Apply(image, scratch, random, part);
    CropResize crop = CropResize::Whole(image->height, image->width);
    CoverAtLeast(size_.height - 2 * pad_, size_.width - 2 * pad_, "random_crop", &crop);
    if (crop.resized()) {
      io::Apply(crop, *image, {image->height, image->width, crop.box, 1}, scratch);
      std::swap(*image, *scratch);
      part.Moves(crop.Map());
    }
    const Box box = Place(image->height, image->width, random);
    CopyBox(*image, box, static_cast<uint8_t>(fill_), scratch);
    std::swap(*image, *scratch);
    part.Moves(PointMap::Shift(-box.x, -box.y));
  }
  ImageSize OutputSize(ImageSize) const override { return {size_.height, size_.width}; }

 private:
  Box Place(int height, int width, RandomStream* random) const {
    const auto y = static_cast<int>(random->Below(height + 2 * pad_ - size_.height + 1)) - pad_;
    const auto x = static_cast<int>(random->Below(width + 2 * pad_ - size_.width + 1)) - pad_;
    return {y, x, size_.height, size_.width};
  }

  SizePair size_;
  int pad_, fill_;
};

struct RandomResizedCropParam : Parameter<RandomResizedCropParam> {
  TShape size;
  std::vector<double> area, aspect;
  int interpolation;
  bool antialias;
  static void Declare(Fields<RandomResizedCropParam>& f) {
    f.Add("size", &RandomResizedCropParam::size)
        .Required()
        .Help("side of a square, or (height, width)");
    f.Add("area", &RandomResizedCropParam::area)
        .Default({0.08, 1})
        .Help("minimum and maximum fraction of the image's area");
    f.Add("aspect", &RandomResizedCropParam::aspect)
        .Default({0.75, 4.0 / 3})
        .Help("minimum and maximum width / height of that part");
    DeclareResampling(f);
  }
};

// A box of random area and aspect ratio, tried ten times; then the largest centred box within the
// allowed ratios. (Szegedy et al., "Going deeper with convolutions", CVPR 2015; the fallback is the
// usual one.)
class RandomResizedCrop final : public detail::CropResizeTransform {
 public:
  explicit RandomResizedCrop(const RandomResizedCropParam& param)
      : param_(param),
        size_(ParseSize(param.size, "random_resized_crop")),
        resampling_(
            CheckResampling({param.interpolation, param.antialias}, "random_resized_crop")) {
    CheckRange(param.area, "area", 1);
    CheckRange(param.aspect, "aspect", 1e3);
  }

  bool draws() const override { return true; }
  bool Fold(CropResize* crop, RandomStream* random) const override {
    if (crop->resized()) return false;
    const Box box = Choose(crop->height(), crop->width(), random);
    crop->Crop(box);
    return crop->Resize(size_.height, size_.width, resampling_);
  }
  ImageSize OutputSize(ImageSize) const override { return {size_.height, size_.width}; }

 private:
  static void CheckRange(const std::vector<double>& range, const char* name, double most) {
    if (range.size() == 2 && range[0] > 0 && range[0] <= range[1] && range[1] <= most) return;
    Throw(ErrorKind::kConfig,
          "random_resized_crop: {} = {}: expected two numbers, minimum and maximum, above 0 and at "
          "most {}",
          name, params::Print(range), most);
  }

  Box Choose(int height, int width, RandomStream* random) const {
    constexpr int kTries = 10;
    for (int i = 0; i < kTries; ++i) {
      const double area = random->Uniform(param_.area[0], param_.area[1]) * height * width;
      const double aspect =
          std::exp(random->Uniform(std::log(param_.aspect[0]), std::log(param_.aspect[1])));
      const auto h = static_cast<int>(std::lround(std::sqrt(area / aspect))),
                 w = static_cast<int>(std::lround(std::sqrt(area * aspect)));
      if (h < 1 || w < 1 || h > height || w > width) continue;
      const auto y = static_cast<int>(random->Below(height - h + 1)),
                 x = static_cast<int>(random->Below(width - w + 1));
      return {y, x, h, w};
    }
    const double aspect = std::clamp(double(width) / height, param_.aspect[0], param_.aspect[1]);
    const int h = std::clamp(static_cast<int>(std::lround(width / aspect)), 1, height);
    const int w = std::clamp(static_cast<int>(std::lround(height * aspect)), 1, width);
    return {(height - h) / 2, (width - w) / 2, h, w};
  }

  RandomResizedCropParam param_;
  SizePair size_;
  Resampling resampling_;
};

}  // namespace

std::vector<detail::TransformEntry> detail::RandomTransforms() {
  return {
      MakeTransformEntry<Flip, FlipParam>("flip", "mirrors the image, or not"),
      MakeTransformEntry<RandomCrop, RandomCropParam>("random_crop", "a crop at a random position"),
      MakeTransformEntry<RandomResizedCrop, RandomResizedCropParam>("random_resized_crop",
                                                                    "a random crop, resized")};
}

}  // namespace mxtrain::io
