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

class Resize final : public detail::CutTransform {
 public:
  explicit Resize(const ResizeParam& param) : size_(ParseSize(param.size, "resize")), interpolation_(param.interpolation) {}

  bool draws() const override { return false; }
  bool Fold(Cut* cut, RandomStream*) const override {
    const PictureSize to = SizeFor(cut->height(), cut->width());
    return cut->Resize(to.height, to.width, interpolation_);
  }
  PictureSize OutputSize(PictureSize input) const override {
    if (!size_.single) return {size_.height, size_.width};
    return input.known() ? SizeFor(input.height, input.width) : PictureSize();
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

class CenterCrop final : public detail::CutTransform {
 public:
  explicit CenterCrop(const CenterCropParam& param) : size_(ParseSize(param.size, "center_crop")) {}

  bool draws() const override { return false; }
  bool Fold(Cut* cut, RandomStream*) const override {
    if (!CoverAtLeast(size_.height, size_.width, cut)) return false;
    cut->Crop({(cut->height() - size_.height) / 2, (cut->width() - size_.width) / 2, size_.height, size_.width});
    return true;
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
