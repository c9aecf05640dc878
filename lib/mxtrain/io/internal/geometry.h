// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the geometric transforms. Private to io; Warp uses OpenCV, single-threaded.
#include "mxtrain/base/params.h"
#include "mxtrain/base/shape.h"
#include "mxtrain/io/crop_resize.h"

namespace mxtrain::io {

// Throws kConfig naming `owner` if an image that a transform makes would exceed the limits of
// decoded ones (image.h).
void CheckPixels(int64_t height, int64_t width, const char* owner);

// A size parameter: one number (a square, or a shorter edge) or (height, width). Throws kConfig
// naming `owner`.
struct SizePair {
  int height = 0, width = 0;
  bool single = false;
};
SizePair ParseSize(const TShape& size, const char* owner);

// Parameters of every resizing transform: P::interpolation and P::antialias.
template <typename P>
void DeclareResampling(Fields<P>& f) {
  f.Add("interpolation", &P::interpolation)
      .Enum({{"bilinear", kBilinear},
             {"bicubic", kCubic},
             {"nearest", kNearest},
             {"area", kArea},
             {"auto", kAuto},
             {"cubic", kCubic}})
      .Default(kAuto)
      .Help(
          "how a new pixel is made of old ones; auto: area (their mean) if the image shrinks to "
          "half or less, else bilinear, and always bilinear with antialias: true; cubic is another "
          "name of bicubic");
  f.Add("antialias", &P::antialias)
      .Default(false)
      .Help(
          "average over all pixels that a new one covers, with bilinear or bicubic weights, as "
          "torchvision and Pillow do");
}
// Throws kConfig naming `owner` if antialias does not apply to the interpolation.
Resampling CheckResampling(const Resampling& resampling, const char* owner);
// Checkpoints of models trained before sizes and positions were rounded like torchvision's contain
// kEarlier.
enum Rounding { kTorchvision, kEarlier };

// Enlarges an image that does not cover height x width, keeping its aspect ratio, until it just
// does. False as CropResize::Resize. Throws as CheckPixels.
bool CoverAtLeast(int height, int width, const char* owner, CropResize* crop);
// The result's pixel at p is the image's at matrix * (p - c) + c + shift, where p = (x, y) and c is
// the center.
struct Affine {
  double matrix[2][2] = {{1, 0}, {0, 1}};
  double shift[2] = {0, 0};

  // From points of an image of this size to those of the result.
  PointMap Map(int height, int width) const;
};
// Pixels outside the image: `value`, the nearest edge pixel (aaa|abc|ccc), or the image mirrored at
// its edge (cba|abc|cba).
struct Outside {
  enum Mode { kConstant, kEdge, kReflect };
  Mode mode = kConstant;
  uint8_t value = 0;
};
// Replaces *image, bilinear or nearest; *scratch is reusable memory. Throws kConfig for an image
// with an edge above 32766.
void Warp(const Affine& affine, bool nearest, const Outside& outside, Image* image, Image* scratch);
// The same by a map from points of the image to those of the result, which may be a perspective.
void Warp(const PointMap& map, bool nearest, const Outside& outside, Image* image, Image* scratch);
// Copies a box that may extend beyond the image; pixels outside are `fill`.
void CopyBox(const Image& from, const Box& box, uint8_t fill, Image* to);

}  // namespace mxtrain::io
