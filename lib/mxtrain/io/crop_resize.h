// SPDX-License-Identifier: Apache-2.0
#pragma once
// Crop, resize and flip in one pass, as most chains begin.
#include <span>
#include <vector>

#include "mxtrain/base/pixel_levels.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/point_map.h"

namespace mxtrain::io {

// kAuto: area if the image shrinks to half or less, else bilinear.
enum Interpolation { kNearest, kBilinear, kCubic, kArea, kAuto };

// How a box is resampled. With antialiasing, bilinear and cubic average over all pixels that a new
// one covers, as Pillow does (resample.h); auto is then bilinear.
struct Resampling {
  int interpolation = kAuto;
  bool antialias = false;
  Resampling(int how = kAuto, bool smoothed = false) : interpolation(how), antialias(smoothed) {}
  friend bool operator==(const Resampling&, const Resampling&) = default;
};

// Resizes a box of an image to a grid of pixels, keeps a window of it and mirrors that. Steps are
// added one by one; the result equals applying each step alone, except for pixels that a later step
// discards.
struct MXTRAIN_API CropResize {
  Box box;  // of the whole image
  int grid_height = 0, grid_width = 0;
  Box window;  // of the grid
  bool mirrored = false, upside_down = false;
  Resampling how = {};

  static CropResize Whole(int height, int width) {
    return {{0, 0, height, width}, height, width, {0, 0, height, width}};
  }
  int height() const { return window.height; }  // of the result
  int width() const { return window.width; }
  bool resized() const { return grid_height != box.height || grid_width != box.width; }

  // Crops the result so far; `part` must be inside it.
  void Crop(const Box& part);
  // Returns false, changing nothing, if the result so far has another size and was already resized:
  // that must be applied first.
  bool Resize(int new_height, int new_width, const Resampling& resampling);
  // The part of the box that the window depends on, plus a margin.
  Box Needed() const;
  // From points of the whole image to those of the result.
  PointMap Map() const;
  // The smallest factor by which the image may be reduced beforehand without being enlarged here.
  double MinScale() const;

  friend bool operator==(const CropResize&, const CropResize&) = default;
};

// `frame`: the part of the whole image that `from` contains; must cover what the crop needs.
// Samples are at pixel centers; taps outside the box use its edge. nearest takes the pixel that
// contains the center, or Pillow's choice if the center is on the edge of two; bilinear uses two
// taps and cubic four (a = -0.75), at the original distance even when shrinking unless antialiased;
// area takes the mean over a new pixel, and is bilinear along an axis that grows. Results are
// rounded to 8 bits, or to 16 of a deep image, which must not be antialiased.
MXTRAIN_API void Apply(const CropResize& crop, const Image& from, const Frame& frame, Image* to);
// The same, to pixels [height, width, C] in a given buffer; not of a deep image.
MXTRAIN_API void ApplyToPixels(const CropResize& crop, const Image& from, const Frame& frame,
                               uint8_t* pixels);
// The same, converted to planes [C, height, width] of values: bit-exact with PixelLevels on
// processors with FMA3 (all with AVX2); older ones round twice instead of once. A sample of a deep
// image is a pixel value in steps of 1/257, and is not rounded before.
MXTRAIN_API void ApplyToPlanes(const CropResize& crop, const Image& from, const Frame& frame,
                               const PixelLevels& levels, float* planes);
// Interleaved pixels to planes.
MXTRAIN_API void PixelsToPlanes(std::span<const uint8_t> pixels, int channels,
                                const PixelLevels& levels, float* planes);

// out[c] = sum over k of matrix[c][k] * pixel[k] + matrix[c][3], rounded and clamped; for RGB in
// place.
MXTRAIN_API void MixChannels(const float (&matrix)[3][4], Image* image);

}  // namespace mxtrain::io
