#pragma once
// Parts of pictures, resized and mirrored: what most chains begin with, done in one pass.
#include <span>
#include <vector>

#include "mxtrain/base/pixel_levels.h"
#include "mxtrain/io/image.h"

namespace mxtrain::io {

// kAuto: area where the picture shrinks to half or less, else bilinear.
enum Interpolation { kNearest, kBilinear, kCubic, kArea, kAuto };

// How a box becomes a grid of pixels. Antialiased, bilinear and cubic take a mean over all pixels that a new one covers, as Pillow does
// (resample.h); auto is then bilinear.
struct Resampling {
  int interpolation = kAuto;
  bool antialias = false;
  Resampling(int interpolation = kAuto, bool antialias = false) : interpolation(interpolation), antialias(antialias) {}
  friend bool operator==(const Resampling&, const Resampling&) = default;
};

// A box of a picture is resized to a grid of pixels, of which a window is kept and then mirrored. Steps are added one after another; the
// result is that of each step alone, but for the pixels that no later step keeps.
struct MXTRAIN_API CropResize {
  Box box;  // of the whole picture
  int grid_height = 0, grid_width = 0;
  Box window;  // of the grid
  bool mirrored = false, upside_down = false;
  Resampling how = {};

  static CropResize Whole(int height, int width) { return {{0, 0, height, width}, height, width, {0, 0, height, width}}; }
  int height() const { return window.height; }  // of the result
  int width() const { return window.width; }
  bool resized() const { return grid_height != box.height || grid_width != box.width; }

  // A part of the result so far, inside it.
  void Crop(const Box& part);
  // False, and nothing is changed, where the result so far has another size and was resized already: that must be done first.
  bool Resize(int new_height, int new_width, const Resampling& resampling);
  // The part of the box that the window's pixels are made of, and a little more.
  Box Needed() const;
  // The least factor by which the picture may be reduced beforehand without being enlarged here.
  double MinScale() const;

  friend bool operator==(const CropResize&, const CropResize&) = default;
};

// `frame` says what of the whole picture `from` shows: all that the crop needs. Samples lie at the middle of pixels; taps beyond the box
// take its edge. nearest takes the pixel that holds the middle; bilinear two taps and cubic four (a = -0.75), at the original distance
// also when shrinking unless antialiased; area the mean of what a new pixel covers, and bilinear along an axis that grows. Results are
// rounded to 8 bits.
MXTRAIN_API void Apply(const CropResize& crop, const Image& from, const Frame& frame, Image* to);
// The same to pixels [height, width, C] that lie elsewhere.
MXTRAIN_API void ApplyToPixels(const CropResize& crop, const Image& from, const Frame& frame, uint8_t* pixels);
// The same, and then to planes [C, height, width] of numbers: the bits of PixelLevels on processors that multiply and add in one (FMA3, as every
// one with AVX2), two roundings in place of one on older ones.
MXTRAIN_API void ApplyToPlanes(const CropResize& crop, const Image& from, const Frame& frame, const PixelLevels& levels, float* planes);
// Interleaved pixels to planes.
MXTRAIN_API void PixelsToPlanes(std::span<const uint8_t> pixels, int channels, const PixelLevels& levels, float* planes);

// out[c] = sum over k of matrix[c][k] * pixel[k] + matrix[c][3], rounded and clamped; for RGB in place.
MXTRAIN_API void MixChannels(const float (&matrix)[3][4], Image* image);

}  // namespace mxtrain::io
