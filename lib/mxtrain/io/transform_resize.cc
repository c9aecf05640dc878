// SPDX-License-Identifier: Apache-2.0
// resize, center_crop and letterbox.
#include <algorithm>
#include <cmath>
#include <utility>

#include "mxtrain/io/internal/geometry.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

struct ResizeParam : Parameter<ResizeParam> {
  TShape size;
  int interpolation, rounding;
  bool antialias;
  static void Declare(Fields<ResizeParam>& f) {
    f.Add("size", &ResizeParam::size)
        .Required()
        .Help("length of the shorter edge (aspect ratio kept), or (height, width)");
    DeclareResampling(f);
    f.Add("rounding", &ResizeParam::rounding)
        .Enum({{"torchvision", kTorchvision}, {"earlier", kEarlier}})
        .Default(kTorchvision)
        .Help(
            "rounding of the longer edge: down; earlier: to the nearest, as in older checkpoints");
  }
};

class Resize final : public detail::CropResizeTransform {
 public:
  explicit Resize(const ResizeParam& param)
      : size_(ParseSize(param.size, "resize")),
        resampling_(CheckResampling({param.interpolation, param.antialias}, "resize")),
        rounding_(param.rounding) {}

  bool draws() const override { return false; }
  bool Fold(CropResize* crop, RandomStream*) const override {
    const ImageSize to = SizeFor(crop->height(), crop->width());
    return crop->Resize(to.height, to.width, resampling_);
  }
  ImageSize OutputSize(ImageSize input) const override {
    if (!size_.single || input.square) return {size_.height, size_.width};
    return input.known() ? SizeFor(input.height, input.width) : ImageSize();
  }

 private:
  ImageSize SizeFor(int height, int width) const {
    if (!size_.single) return {size_.height, size_.width};
    const int64_t shorter = size_.height,
                  longer = Longer(std::min(height, width), std::max(height, width));
    const auto [new_height, new_width] =
        height <= width ? std::pair(shorter, longer) : std::pair(longer, shorter);
    CheckPixels(new_height, new_width, "resize");
    return {static_cast<int>(new_height), static_cast<int>(new_width)};
  }
  int64_t Longer(int shorter, int longer) const {
    if (rounding_ == kTorchvision) return int64_t{size_.height} * longer / shorter;
    return std::lround(longer * (double(size_.height) / shorter));
  }

  SizePair size_;
  Resampling resampling_;
  int rounding_;
};

struct CenterCropParam : Parameter<CenterCropParam> {
  TShape size;
  double fraction;
  int rounding;
  static void Declare(Fields<CenterCropParam>& f) {
    f.Add("size", &CenterCropParam::size)
        .Default(TShape(std::span<const int64_t>{}))
        .Help("side of a square, or (height, width); a smaller image is enlarged first");
    f.Add("fraction", &CenterCropParam::fraction)
        .Default(0)
        .Range(0, 1)
        .Help(
            "instead of size: a square of this fraction of the shorter edge; its size and position "
            "are rounded down");
    f.Add("rounding", &CenterCropParam::rounding)
        .Enum({{"torchvision", kTorchvision}, {"earlier", kEarlier}})
        .Default(kTorchvision)
        .Help(
            "rounding of a position at half a pixel: to even; earlier: down, and the size of a "
            "fraction to the nearest, as in older checkpoints");
  }
};

class CenterCrop final : public detail::CropResizeTransform {
 public:
  explicit CenterCrop(const CenterCropParam& param)
      : fraction_(param.fraction), rounding_(param.rounding) {
    if ((param.fraction > 0) == (param.size.ndim() > 0)) {
      Throw(ErrorKind::kConfig,
            "center_crop: expected either a size or a fraction of the shorter edge: center_crop: "
            "224, center_crop: {{fraction: 0.875}}");
    }
    if (fraction_ == 0) size_ = ParseSize(param.size, "center_crop");
  }

  bool draws() const override { return false; }
  bool Fold(CropResize* crop, RandomStream*) const override {
    const SizePair size = SizeFor(crop->height(), crop->width());
    if (!CoverAtLeast(size.height, size.width, "center_crop", crop)) return false;
    crop->Crop({Begin(crop->height() - size.height), Begin(crop->width() - size.width), size.height,
                size.width});
    return true;
  }
  ImageSize OutputSize(ImageSize input) const override {
    if (fraction_ > 0 && !input.known()) return {.square = true};
    const SizePair size = SizeFor(input.height, input.width);
    return {size.height, size.width};
  }

 private:
  SizePair SizeFor(int height, int width) const {
    if (fraction_ == 0) return size_;
    const double exact = std::max(1.0, fraction_ * std::min(height, width));
    const int edge =
        static_cast<int>(rounding_ == kTorchvision ? std::floor(exact) : std::round(exact));
    return {edge, edge, true};
  }
  int Begin(int spare) const {
    if (fraction_ > 0 || rounding_ == kEarlier) return spare / 2;
    return static_cast<int>(std::nearbyint(spare / 2.0));  // half to even
  }

  SizePair size_;
  double fraction_;
  int rounding_;
};

struct LetterboxParam : Parameter<LetterboxParam> {
  TShape size;
  int fill, interpolation;
  bool antialias;
  static void Declare(Fields<LetterboxParam>& f) {
    f.Add("size", &LetterboxParam::size).Required().Help("side of a square, or (height, width)");
    f.Add("fill", &LetterboxParam::fill)
        .Default(114)
        .Range(0, 255)
        .Help("value of pixels right of and below the image");
    DeclareResampling(f);
  }
};

class Letterbox final : public Transform {
 public:
  explicit Letterbox(const LetterboxParam& param)
      : size_(ParseSize(param.size, "letterbox")),
        fill_(static_cast<uint8_t>(param.fill)),
        resampling_(CheckResampling({param.interpolation, param.antialias}, "letterbox")) {}

  bool draws() const override { return false; }
  void Apply(Image* image, Image* scratch, RandomStream*, const ImagePart& part) const override {
    const double scale =
        std::min(double(size_.height) / image->height, double(size_.width) / image->width);
    // Rounded down, as YOLOX does: scale * height may be just below size_.height.
    const auto scaled = [scale](int length) {
      return std::max(1, static_cast<int>(length * scale));
    };
    CropResize crop = CropResize::Whole(image->height, image->width);
    MXTRAIN_ASSERT(crop.Resize(scaled(image->height), scaled(image->width), resampling_));
    io::Apply(crop, *image, {image->height, image->width, crop.box, 1}, scratch);
    part.Moves(crop.Map());
    CopyBox(*scratch, {0, 0, size_.height, size_.width}, fill_, image);
  }
  ImageSize OutputSize(ImageSize) const override { return {size_.height, size_.width}; }

 private:
  SizePair size_;
  uint8_t fill_;
  Resampling resampling_;
};

}  // namespace

std::vector<detail::TransformEntry> detail::ResizeTransforms() {
  return {MakeTransformEntry<Resize, ResizeParam>("resize", "to a shorter edge or an exact size"),
          MakeTransformEntry<CenterCrop, CenterCropParam>("center_crop", "the center"),
          MakeTransformEntry<Letterbox, LetterboxParam>(
              "letterbox", "to a size with the aspect ratio kept: the rest is filled")};
}

}  // namespace mxtrain::io
