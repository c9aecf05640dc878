// SPDX-License-Identifier: Apache-2.0
// iou_crop and zoom_out (Liu et al. 2016, "SSD", arXiv 1512.02325, section 3.6).
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "mxtrain/io/internal/box_labels.h"
#include "mxtrain/io/internal/geometry.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

struct IouCropParam : Parameter<IouCropParam> {
  std::vector<double> overlap, side, aspect;
  int tries;
  static void Declare(Fields<IouCropParam>& f) {
    f.Add("overlap", &IouCropParam::overlap)
        .Default({0, 0.1, 0.3, 0.5, 0.7, 0.9, 1})
        .Range(0, 1)
        .Help(
            "one is drawn: the least intersection over union of the crop with one of the objects "
            "whose center it has; 1: the whole image");
    f.Add("side", &IouCropParam::side)
        .Default({0.3, 1})
        .Help("minimum and maximum side, as a fraction of the image's");
    f.Add("aspect", &IouCropParam::aspect)
        .Default({0.5, 2})
        .Help("minimum and maximum width / height of the crop");
    f.Add("tries", &IouCropParam::tries)
        .Default(40)
        .Range(1, 10'000)
        .Help("crops that are tried before another overlap is drawn");
  }
};

double OverlapOf(const SeenBox& object, const Box& box) {
  const double left = std::max<double>(object.low.x, box.x),
               top = std::max<double>(object.low.y, box.y),
               right = std::min<double>(object.high.x, box.x + box.width),
               bottom = std::min<double>(object.high.y, box.y + box.height);
  if (right <= left || bottom <= top) return 0;
  const double common = (right - left) * (bottom - top);
  const double own = (object.high.x - object.low.x) * (object.high.y - object.low.y);
  return common / (own + double(box.width) * box.height - common);
}
bool HasCenter(const Box& box, const SeenBox& object) {
  const double x = (object.low.x + object.high.x) / 2, y = (object.low.y + object.high.y) / 2;
  return x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
}

// As torchvision's RandomIoUCrop; but what of an object is outside of the crop, and whether it is
// still learnt, is as for other crops, and an image of which no crop is found stays whole.
class IouCrop final : public Transform {
 public:
  explicit IouCrop(const IouCropParam& param)
      : param_(param),
        side_(detail::ParseRange(param.side, "iou_crop", "side", 0.01, 1)),
        aspect_(detail::ParseRange(param.aspect, "iou_crop", "aspect", 0.01, 100)) {
    if (param.overlap.empty())
      Throw(ErrorKind::kConfig, "iou_crop: overlap = (): expected one or more numbers");
  }

  bool draws() const override { return true; }
  bool reads_objects() const override { return true; }
  // Draws one number, whatever the objects: those that it needs are of a stream of their own.
  void Apply(Image* image, Image* scratch, RandomStream* random,
             const ImagePart& part) const override {
    RandomStream own(static_cast<uint64_t>(random->Below(int64_t{1} << 32)), 0, 0, "io.iou_crop");
    const std::optional<Box> box =
        Choose(image->height, image->width, ObjectsOf(part, image->height, image->width), &own);
    if (!box) return;
    CopyBox(*image, *box, 0, scratch);
    std::swap(*image, *scratch);
    part.Moves(PointMap::Shift(-box->x, -box->y));
  }
  ImageSize OutputSize(ImageSize) const override { return {}; }

 private:
  // Those to learn of, where they are now.
  static std::vector<SeenBox> ObjectsOf(const ImagePart& part, int height, int width) {
    std::vector<SeenBox> objects;
    if (!part.origin || part.columns < kBoxColumns) return objects;
    ImageOrigin origin = *part.origin;
    origin.EndsAt(height, width);
    const auto columns = static_cast<size_t>(part.columns);
    for (size_t at = 0; at + columns <= part.objects.size(); at += columns) {
      const BoxRow row(&part.objects[at]);
      const std::optional<SeenBox> seen = SeenOf(row, origin);
      if (seen && seen->enough && row.IsFor(kPlainBox)) objects.push_back(*seen);
    }
    return objects;
  }

  // Nothing: the whole image.
  std::optional<Box> Choose(int height, int width, std::span<const SeenBox> objects,
                            RandomStream* random) const {
    constexpr int kDraws = 50;  // of an overlap
    for (int draw = 0; draw < kDraws && !objects.empty(); ++draw) {
      const double least =
          param_.overlap[static_cast<size_t>(random->Below(std::ssize(param_.overlap)))];
      if (least >= 1) return std::nullopt;
      for (int i = 0; i < param_.tries; ++i) {
        const std::optional<Box> box = Draw(height, width, random);
        if (box && Fits(*box, objects, least)) return box;
      }
    }
    return std::nullopt;
  }
  std::optional<Box> Draw(int height, int width, RandomStream* random) const {
    const auto part = [&](int whole) {
      return static_cast<int>(whole * random->Uniform(side_.low, side_.high));
    };
    const int w = part(width), h = part(height);
    const auto begin = [random](int spare) {
      return static_cast<int>(spare * random->Uniform(0, 1));
    };
    const int x = begin(width - w), y = begin(height - h);
    if (w < 1 || h < 1) return std::nullopt;
    const double aspect = double(w) / h;
    if (aspect < aspect_.low || aspect > aspect_.high) return std::nullopt;
    return Box{y, x, h, w};
  }
  static bool Fits(const Box& box, std::span<const SeenBox> objects, double least) {
    return std::ranges::any_of(objects, [&](const SeenBox& object) {
      return HasCenter(box, object) && OverlapOf(object, box) >= least;
    });
  }

  IouCropParam param_;
  detail::NumberRange side_, aspect_;
};

struct ZoomOutParam : Parameter<ZoomOutParam> {
  std::vector<double> side;
  double p;
  int fill;
  static void Declare(Fields<ZoomOutParam>& f) {
    f.Add("side", &ZoomOutParam::side)
        .Default({1, 4})
        .Help("minimum and maximum side of the new image, as a multiple of the image's");
    f.Add("p", &ZoomOutParam::p).Default(0.5).Range(0, 1).Help("probability");
    f.Add("fill", &ZoomOutParam::fill)
        .Default(0)
        .Range(0, 255)
        .Help("value of the pixels around the image");
  }
};

// As torchvision's RandomZoomOut.
class ZoomOut final : public Transform {
 public:
  explicit ZoomOut(const ZoomOutParam& param)
      : side_(detail::ParseRange(param.side, "zoom_out", "side", 1, 100)),
        p_(param.p),
        fill_(static_cast<uint8_t>(param.fill)) {}

  bool draws() const override { return true; }
  void Apply(Image* image, Image* scratch, RandomStream* random,
             const ImagePart& part) const override {
    const bool chosen = random->Chance(p_);
    const double factor = random->Uniform(side_.low, side_.high);
    const double right = random->Uniform(), down = random->Uniform();
    if (!chosen) return;
    const auto height = static_cast<int64_t>(image->height * factor),
               width = static_cast<int64_t>(image->width * factor);
    CheckPixels(height, width, "zoom_out");
    const Box box{-static_cast<int>(static_cast<double>(height - image->height) * down),
                  -static_cast<int>(static_cast<double>(width - image->width) * right),
                  static_cast<int>(height), static_cast<int>(width)};
    CopyBox(*image, box, fill_, scratch);
    std::swap(*image, *scratch);
    part.Moves(PointMap::Shift(-box.x, -box.y));
  }
  ImageSize OutputSize(ImageSize input) const override {
    return p_ == 0 || side_.high == 1 ? input : ImageSize{};
  }

 private:
  detail::NumberRange side_;
  double p_;
  uint8_t fill_;
};

}  // namespace

std::vector<detail::TransformEntry> detail::ObjectTransforms() {
  return {MakeTransformEntry<IouCrop, IouCropParam>(
              "iou_crop", "a random crop that one of the objects fills enough of"),
          MakeTransformEntry<ZoomOut, ZoomOutParam>("zoom_out",
                                                    "puts the image somewhere into a larger one")};
}

}  // namespace mxtrain::io
