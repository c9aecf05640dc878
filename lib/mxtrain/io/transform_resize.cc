// resize and center_crop.
#include <algorithm>
#include <cmath>

#include "mxtrain/io/geometry.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

struct ResizeParam : Parameter<ResizeParam> {
  TShape size;
  int interpolation;
  static void Declare(Fields<ResizeParam>& f) {
    f.Add("size", &ResizeParam::size).Required().Help("of the shorter edge (proportions kept), or (height, width)");
    f.Add("interpolation", &ResizeParam::interpolation)
        .Enum({{"nearest", kNearest}, {"bilinear", kBilinear}, {"cubic", kCubic}, {"area", kArea}, {"auto", kAuto}})
        .Default(kAuto)
        .Help("auto: area where the picture shrinks to half or less, else bilinear");
  }
};

class Resize final : public Transform {
 public:
  explicit Resize(const ResizeParam& param) : size_(ParseSize(param.size, "resize")), interpolation_(param.interpolation) {}

  void Apply(Image* image, Image* scratch, RandomStream*) const override {
    const PictureSize to = SizeFor(image->height, image->width);
    if (to.height == image->height && to.width == image->width) return;
    ResizeBox(*image, {0, 0, image->height, image->width}, to.height, to.width, interpolation_, scratch);
    std::swap(*image, *scratch);
  }
  PictureSize OutputSize(PictureSize input) const override {
    if (!size_.single) return {size_.height, size_.width};
    return input.known() ? SizeFor(input.height, input.width) : PictureSize();
  }
  double MinScale(int height, int width, RandomStream) const override {
    const PictureSize to = SizeFor(height, width);
    return std::min(1.0, std::max(double(to.height) / height, double(to.width) / width));
  }

 private:
  PictureSize SizeFor(int height, int width) const {
    if (!size_.single) return {size_.height, size_.width};
    const double scale = double(size_.height) / std::min(height, width);
    const auto longer = [scale](int edge) { return std::max(1, static_cast<int>(std::lround(edge * scale))); };
    return height <= width ? PictureSize{size_.height, longer(width)} : PictureSize{longer(height), size_.height};
  }

  SizePair size_;
  int interpolation_;
};

struct CenterCropParam : Parameter<CenterCropParam> {
  TShape size;
  static void Declare(Fields<CenterCropParam>& f) {
    f.Add("size", &CenterCropParam::size).Required().Help("of a square, or (height, width); a smaller picture is enlarged first");
  }
};

class CenterCrop final : public Transform {
 public:
  explicit CenterCrop(const CenterCropParam& param) : size_(ParseSize(param.size, "center_crop")) {}

  void Apply(Image* image, Image* scratch, RandomStream*) const override {
    CoverAtLeast(size_.height, size_.width, image, scratch);
    CopyBox(*image, {(image->height - size_.height) / 2, (image->width - size_.width) / 2, size_.height, size_.width}, 0, scratch);
    std::swap(*image, *scratch);
  }
  PictureSize OutputSize(PictureSize) const override { return {size_.height, size_.width}; }

 private:
  SizePair size_;
};

}  // namespace

std::vector<detail::TransformEntry> detail::ResizeTransforms() {
  return {MakeTransformEntry<Resize, ResizeParam>("resize", "to a shorter edge or an exact size"),
          MakeTransformEntry<CenterCrop, CenterCropParam>("center_crop", "the middle")};
}

}  // namespace mxtrain::io
