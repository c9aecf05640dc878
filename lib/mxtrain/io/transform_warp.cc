// SPDX-License-Identifier: Apache-2.0
// rotate, scale, aspect and shear: about the center, keeping the image's size; perspective.
#include <array>
#include <cmath>
#include <numbers>

#include "mxtrain/io/internal/geometry.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

using detail::NumberRange;

template <typename Param>
void DeclareCommon(Fields<Param>& f) {
  f.Add("p", &Param::p).Default(1).Range(0, 1).Help("probability");
  f.Add("fill", &Param::fill)
      .Default(0)
      .Range(0, 255)
      .Help("value of pixels outside the image, with fill_mode constant");
  f.Add("fill_mode", &Param::fill_mode)
      .Enum({{"constant", Outside::kConstant},
             {"edge", Outside::kEdge},
             {"reflect", Outside::kReflect}})
      .Default(Outside::kConstant)
      .Help("pixels outside the image: the value of fill, the edge pixels, or the image mirrored");
  f.Add("interpolation", &Param::interpolation)
      .Enum({{"nearest", kNearest}, {"bilinear", kBilinear}})
      .Default(kBilinear)
      .Help("interpolation between pixels");
}

struct AngleParam : Parameter<AngleParam> {
  std::vector<double> degrees;
  double p;
  int fill, fill_mode, interpolation;
  static void Declare(Fields<AngleParam>& f) {
    f.Add("degrees", &AngleParam::degrees)
        .Required()
        .Help("minimum and maximum angle; one number a: -a .. a");
    DeclareCommon(f);
  }
};

struct FactorParam : Parameter<FactorParam> {
  std::vector<double> factor;
  double p;
  int fill, fill_mode, interpolation;
  static void Declare(Fields<FactorParam>& f) {
    f.Add("factor", &FactorParam::factor)
        .Required()
        .Help("minimum and maximum factor, drawn log-uniformly");
    DeclareCommon(f);
  }
};

using WarpMatrix = double[2][2];

// `Kind::Fill(drawn, m)` builds the matrix for the random number.
template <typename Param, typename Kind>
class Warping final : public Transform {
 public:
  explicit Warping(const Param& param)
      : range_(Kind::Range(param)),
        p_(param.p),
        outside_{static_cast<Outside::Mode>(param.fill_mode), static_cast<uint8_t>(param.fill)},
        nearest_(param.interpolation == kNearest) {}

  bool draws() const override { return true; }
  void Apply(Image* image, Image* scratch, RandomStream* random,
             const ImagePart& part) const override {
    const bool chosen = random->Chance(p_);
    const double drawn = random->Uniform(range_.low, range_.high);
    if (!chosen) return;
    Affine affine;
    Kind::Fill(drawn, affine.matrix);
    Warp(affine, nearest_, outside_, image, scratch);
    part.Moves(affine.Map(image->height, image->width));
  }
  ImageSize OutputSize(ImageSize input) const override { return input; }

 private:
  NumberRange range_;
  double p_;
  Outside outside_;
  bool nearest_;
};

NumberRange Angles(const AngleParam& param, const char* owner, double most) {
  const auto around_zero = [](double a) { return NumberRange{-a, a}; };
  const NumberRange degrees =
      detail::ParseRange(param.degrees, owner, "degrees", -most, most, around_zero);
  return {degrees.low * std::numbers::pi / 180, degrees.high * std::numbers::pi / 180};
}

NumberRange Logarithms(const FactorParam& param, const char* owner) {
  const NumberRange factor = detail::ParseRange(param.factor, owner, "factor", 0.01, 100);
  return {std::log(factor.low), std::log(factor.high)};
}

void SetMatrix(WarpMatrix& m, double a, double b, double c, double d) {
  m[0][0] = a, m[0][1] = b, m[1][0] = c, m[1][1] = d;
}

// Counter-clockwise as displayed (y grows downwards).
struct Rotate {
  static NumberRange Range(const AngleParam& param) { return Angles(param, "rotate", 360); }
  static void Fill(double angle, WarpMatrix& m) {
    SetMatrix(m, std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle));
  }
};

struct Shear {
  static NumberRange Range(const AngleParam& param) { return Angles(param, "shear", 80); }
  static void Fill(double angle, WarpMatrix& m) { SetMatrix(m, 1, -std::tan(angle), 0, 1); }
};

struct Scale {
  static NumberRange Range(const FactorParam& param) { return Logarithms(param, "scale"); }
  static void Fill(double log, WarpMatrix& m) {
    SetMatrix(m, std::exp(-log), 0, 0, std::exp(-log));
  }
};

// Width by the root of the factor, height by its inverse: the area is unchanged.
struct Aspect {
  static NumberRange Range(const FactorParam& param) { return Logarithms(param, "aspect"); }
  static void Fill(double log, WarpMatrix& m) {
    SetMatrix(m, std::exp(-log / 2), 0, 0, std::exp(log / 2));
  }
};

struct PerspectiveParam : Parameter<PerspectiveParam> {
  double distortion, p;
  int fill, fill_mode, interpolation;
  static void Declare(Fields<PerspectiveParam>& f) {
    // Beyond 2/3 the corners need not be those of a convex quadrilateral.
    f.Add("distortion", &PerspectiveParam::distortion)
        .Default(0.5)
        .Range(0, 0.65)
        .Help("how far the corners of the image move inward at most, as a part of half its sides");
    DeclareCommon(f);
  }
};

// From the corners (0, 0), (width, 0), (width, height), (0, height) to others (Heckbert 1989,
// "Fundamentals of Texture Mapping and Image Warping", section 2.2.2).
PointMap FromCorners(double width, double height, const std::array<Point, 4>& to) {
  const auto& [p0, p1, p2, p3] = to;
  const double dx1 = p1.x - p2.x, dx2 = p3.x - p2.x, sx = p0.x - p1.x + p2.x - p3.x,
               dy1 = p1.y - p2.y, dy2 = p3.y - p2.y, sy = p0.y - p1.y + p2.y - p3.y;
  const double d = dx1 * dy2 - dx2 * dy1, g = (sx * dy2 - dx2 * sy) / d,
               h = (dx1 * sy - sx * dy1) / d;
  const PointMap of_square{p1.x - p0.x + g * p1.x,
                           p3.x - p0.x + h * p3.x,
                           p0.x,
                           p1.y - p0.y + g * p1.y,
                           p3.y - p0.y + h * p3.y,
                           p0.y,
                           g,
                           h,
                           1};
  return PointMap{1 / width, 0, 0, 0, 1 / height, 0}.Then(of_square);
}

// As torchvision's RandomPerspective: each corner moves inward by itself.
class Perspective final : public Transform {
 public:
  explicit Perspective(const PerspectiveParam& param)
      : distortion_(param.distortion),
        p_(param.p),
        outside_{static_cast<Outside::Mode>(param.fill_mode), static_cast<uint8_t>(param.fill)},
        nearest_(param.interpolation == kNearest) {}

  bool draws() const override { return true; }
  void Apply(Image* image, Image* scratch, RandomStream* random,
             const ImagePart& part) const override {
    const bool chosen = random->Chance(p_);
    const double width = image->width, height = image->height;
    std::array<Point, 4> corners = {{{0, 0}, {width, 0}, {width, height}, {0, height}}};
    for (Point& corner : corners) {
      const double x = random->Uniform(0, distortion_) * width / 2,
                   y = random->Uniform(0, distortion_) * height / 2;
      corner.x += corner.x > 0 ? -x : x;
      corner.y += corner.y > 0 ? -y : y;
    }
    if (!chosen || distortion_ == 0) return;
    const PointMap map = FromCorners(width, height, corners);
    Warp(map, nearest_, outside_, image, scratch);
    part.Moves(map);
  }
  ImageSize OutputSize(ImageSize input) const override { return input; }

 private:
  const double distortion_, p_;
  const Outside outside_;
  const bool nearest_;
};

}  // namespace

std::vector<detail::TransformEntry> detail::WarpTransforms() {
  return {MakeTransformEntry<Warping<AngleParam, Rotate>, AngleParam>(
              "rotate", "rotates the image about its center, counter-clockwise"),
          MakeTransformEntry<Warping<FactorParam, Scale>, FactorParam>(
              "scale", "enlarges (above 1) or shrinks the content"),
          MakeTransformEntry<Warping<FactorParam, Aspect>, FactorParam>(
              "aspect", "changes width / height of the content"),
          MakeTransformEntry<Warping<AngleParam, Shear>, AngleParam>(
              "shear", "moves rows sideways, by their distance from the center"),
          MakeTransformEntry<Perspective, PerspectiveParam>(
              "perspective", "as seen from another place: each corner moves inward by itself")};
}

}  // namespace mxtrain::io
