#pragma once
// What the geometric transforms share. Private to io; OpenCV stands behind it, single-threaded.
#include "mxtrain/base/shape.h"
#include "mxtrain/io/image.h"

namespace mxtrain::io {

// kAuto: area where the picture shrinks to half or less, else bilinear.
enum Interpolation { kNearest, kBilinear, kCubic, kArea, kAuto };

struct Box {
  int y = 0, x = 0, height = 0, width = 0;
};

// A size parameter: one number (a square, or a shorter edge) or (height, width). Throws kConfig naming `owner`.
struct SizePair {
  int height = 0, width = 0;
  bool single = false;
};
SizePair ParseSize(const TShape& size, const char* owner);

// Part of `from` (inside it), resized.
void ResizeBox(const Image& from, const Box& box, int height, int width, int interpolation, Image* to);
// Enlarges a picture that does not cover height x width, keeping its proportions, so that it just does.
void CoverAtLeast(int height, int width, Image* image, Image* scratch);
// Copies a box that may reach beyond the picture; what lies outside is `fill`.
void CopyBox(const Image& from, const Box& box, uint8_t fill, Image* to);
void FlipHorizontal(Image* image);
void FlipVertical(Image* image);

}  // namespace mxtrain::io
