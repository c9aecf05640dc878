#pragma once
// What the geometric transforms share. Private to io; OpenCV stands behind Warp, single-threaded.
#include "mxtrain/base/params.h"
#include "mxtrain/base/shape.h"
#include "mxtrain/io/crop_resize.h"

namespace mxtrain::io {

// A size parameter: one number (a square, or a shorter edge) or (height, width). Throws kConfig naming `owner`.
struct SizePair {
  int height = 0, width = 0;
  bool single = false;
};
SizePair ParseSize(const TShape& size, const char* owner);

// What every transform that resizes has: P::interpolation and P::antialias.
template <typename P>
void DeclareResampling(Fields<P>& f) {
  f.Add("interpolation", &P::interpolation)
      .Enum({{"bilinear", kBilinear}, {"bicubic", kCubic}, {"nearest", kNearest}, {"area", kArea}, {"auto", kAuto}, {"cubic", kCubic}})
      .Default(kAuto)
      .Help("auto: bilinear where antialias is asked for; else area where the picture shrinks to half or less, bilinear elsewhere. cubic is another name of bicubic");
  f.Add("antialias", &P::antialias)
      .Default(false)
      .Help("a new pixel is a mean of all that it covers, with bilinear or bicubic weights: the pixels of torchvision and Pillow");
}
// Throws kConfig naming `owner` where nothing is to be antialiased.
Resampling CheckResampling(const Resampling& resampling, const char* owner);
// Models that were trained before sizes and places were rounded as torchvision's have kEarlier in their checkpoints.
enum Rounding { kTorchvision, kEarlier };

// Enlarges what does not cover height x width, keeping its proportions, so that it just does. False as CropResize::Resize.
bool CoverAtLeast(int height, int width, CropResize* crop);
// The pixel at p of the result is that of the picture at matrix * (p - c) + c + shift, where p = (x, y) and c is the middle.
struct Affine {
  double matrix[2][2] = {{1, 0}, {0, 1}};
  double shift[2] = {0, 0};
};
// What pixels outside the picture are: `value`; the nearest of the edge (aaa|abc|ccc); or the picture mirrored at its edge (cba|abc|cba).
struct Outside {
  enum Mode { kConstant, kEdge, kReflect };
  Mode mode = kConstant;
  uint8_t value = 0;
};
// Bilinear, or nearest.
void Warp(const Affine& affine, bool nearest, const Outside& outside, const Image& from, Image* to);
// Copies a box that may reach beyond the picture; what lies outside is `fill`.
void CopyBox(const Image& from, const Box& box, uint8_t fill, Image* to);

}  // namespace mxtrain::io
