#pragma once
// One step on a picture's pixels: a pure function of the picture and of the example's random numbers.
#include <memory>
#include <string_view>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/random_stream.h"

namespace mxtrain::io {

struct CropResize;

struct ImageSize {
  int height = -1, width = -1;  // -1: not the same for all pictures
  bool square = false;          // where it is not known: as high as wide
  bool known() const { return height >= 0 && width >= 0; }
};

// Immutable: calls may come from any thread. Draws the same count of random numbers from equal streams for pictures of equal size.
class Transform {
 public:
  virtual ~Transform() = default;
  // Whether random numbers are drawn.
  virtual bool draws() const = 0;
  // Adds this step to a crop, drawing what Apply would. False, with nothing changed or drawn, where Apply must be called instead.
  virtual bool Fold(CropResize* /*crop*/, RandomStream* /*random*/) const { return false; }
  // Replaces *image; *scratch is memory that may be used and exchanged with it.
  virtual void Apply(Image* image, Image* scratch, RandomStream* random) const = 0;
  virtual ImageSize OutputSize(ImageSize input) const = 0;
};

struct TransformInfo {
  std::string name, help;
  std::vector<FieldInfo> parameters;  // the first is the main one
};

// A transform as a configuration names it. An empty key stands for the main parameter: {"resize", {{"", "144"}}}.
struct TransformSpec {
  std::string name;
  Kwargs kwargs;
};

namespace detail {
// A step that can be added to every crop that is not resized yet.
class CropResizeTransform : public Transform {
 public:
  void Apply(Image* image, Image* scratch, RandomStream* random) const override;
};

// The families, each beside its sources.
struct TransformEntry {
  TransformInfo info;
  std::unique_ptr<Transform> (*make)(const Kwargs& kwargs, std::string_view name);
};
std::vector<TransformEntry> ResizeTransforms();   // resize, center_crop
std::vector<TransformEntry> RandomTransforms();   // flip, random_crop, random_resized_crop
std::vector<TransformEntry> WarpTransforms();     // rotate, scale, aspect, shear
std::vector<TransformEntry> ColourTransforms();   // brightness, contrast, saturation, hue, lighting
std::vector<TransformEntry> AugmentTransforms();  // trivial_augment, rand_augment
std::vector<TransformEntry> ErasingTransforms();  // random_erasing

// Two numbers, the least and the greatest, within low .. high; one number a stands for `one`(a). Throws kConfig naming owner and parameter.
struct NumberRange {
  double low = 0, high = 0;
};
NumberRange ParseRange(const std::vector<double>& given, const char* owner, const char* parameter, double low, double high,
                       NumberRange (*one)(double) = nullptr);

template <typename T, typename Param>
TransformEntry MakeTransformEntry(const char* name, const char* help) {
  return {{name, help, Param::Describe()}, [](const Kwargs& kwargs, std::string_view owner) -> std::unique_ptr<Transform> {
            Param param;
            param.Init(kwargs, owner);
            return std::make_unique<T>(param);
          }};
}
}  // namespace detail
}  // namespace mxtrain::io
