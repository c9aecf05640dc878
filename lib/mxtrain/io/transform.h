// SPDX-License-Identifier: Apache-2.0
#pragma once
// One step on an image's pixels: a pure function of the image and of the example's random numbers.
// Steps that move pixels apply to every part of an example that has coordinates (images, targets,
// points), steps on their values to the images of its data alone (image_origin.h).
#include <memory>
#include <string_view>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/image_origin.h"
#include "mxtrain/io/random_stream.h"

namespace mxtrain::io {

struct CropResize;

struct ImageSize {
  int height = -1, width = -1;  // -1: differs from image to image
  bool square = false;          // if not known: height equals width
  bool known() const { return height >= 0 && width >= 0; }
};

// Immutable: calls may come from any thread. For images of equal size, draws the same count of
// random numbers from equal streams.
class Transform {
 public:
  virtual ~Transform() = default;
  // Whether random numbers are drawn.
  virtual bool draws() const = 0;
  // Whether it looks where the objects of an example are (ImagePart::objects).
  virtual bool reads_objects() const { return false; }
  // Merges this step into a crop-resize, drawing what Apply would. Returns false, changing and
  // drawing nothing, if Apply must be called instead.
  virtual bool Fold(CropResize* /*crop*/, RandomStream* /*random*/) const { return false; }
  // Replaces *image; *scratch is reusable memory that may be swapped with it. Draws the same count
  // of numbers whatever the part. Throws kConfig, as Fold and OutputSize, if the result would
  // exceed the limits of decoded images (image.h): to the pipeline such an image is a bad example.
  virtual void Apply(Image* image, Image* scratch, RandomStream* random,
                     const ImagePart& part) const = 0;
  virtual ImageSize OutputSize(ImageSize input) const = 0;
};

struct TransformInfo {
  std::string name, help;
  std::vector<FieldInfo> parameters;  // the first is the main one
};

// A transform as written in a configuration. An empty key means the main parameter: {"resize",
// {{"", "144"}}}.
struct TransformSpec {
  std::string name;
  Kwargs kwargs;
};

namespace detail {
// A step that can be merged into any crop-resize that is not resized yet.
class CropResizeTransform : public Transform {
 public:
  void Apply(Image* image, Image* scratch, RandomStream* random,
             const ImagePart& part) const override;
};

// The families of transforms.
struct TransformEntry {
  TransformInfo info;
  std::unique_ptr<Transform> (*make)(const Kwargs& kwargs, std::string_view name);
};
std::vector<TransformEntry> ResizeTransforms();   // resize, center_crop, letterbox
std::vector<TransformEntry> RandomTransforms();   // flip, random_crop, random_resized_crop
std::vector<TransformEntry> WarpTransforms();     // rotate, scale, aspect, shear, perspective
std::vector<TransformEntry> ColourTransforms();   // brightness, contrast, saturation, hue, lighting
std::vector<TransformEntry> NoiseTransforms();    // gaussian_noise
std::vector<TransformEntry> AugmentTransforms();  // trivial_augment, rand_augment
std::vector<TransformEntry> ErasingTransforms();  // random_erasing
std::vector<TransformEntry> ObjectTransforms();   // iou_crop, zoom_out

// Two numbers, minimum and maximum, within low .. high; a single number a means `one`(a). Throws
// kConfig naming owner and parameter.
struct NumberRange {
  double low = 0, high = 0;
};
NumberRange ParseRange(const std::vector<double>& given, const char* owner, const char* parameter,
                       double low, double high, NumberRange (*one)(double) = nullptr);

template <typename T, typename Param>
TransformEntry MakeTransformEntry(const char* name, const char* help) {
  return {{name, help, Param::Describe()},
          [](const Kwargs& kwargs, std::string_view owner) -> std::unique_ptr<Transform> {
            Param param;
            param.Init(kwargs, owner);
            return std::make_unique<T>(param);
          }};
}
}  // namespace detail
}  // namespace mxtrain::io
