#pragma once
// The way of a picture from its decoded pixels into a batch: a chain of transforms, then numbers.
//
// Steps that take parts, resize and mirror are gathered into one CropResize, so that only the pixels that it needs are decoded, and the last one
// goes straight into the batch. The result is that of each step alone.
#include <memory>
#include <span>
#include <vector>

#include "mxtrain/base/shape.h"
#include "mxtrain/io/crop_resize.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {

// Everything that a chain can be made of. Beside the transforms there is `normalize` (mean, std: one number or one per channel, in units of
// 0 .. 1; or from: auto), which stands last.
MXTRAIN_API std::vector<TransformInfo> ListTransforms();

// The chain that evaluates what a training chain prepares, where none is given: its sizes without its chance. random_resized_crop becomes a
// resize to 9/8 of its size and the middle of that, random_crop the middle; resize, center_crop and normalize stay, all else is dropped.
MXTRAIN_API std::vector<TransformSpec> EvaluationTransforms(const std::vector<TransformSpec>& training);

// Immutable: calls may come from any thread.
class MXTRAIN_API Augmenter {
 public:
  // `channels` (1 or 3) is what pictures are decoded to. Throws kConfig: unknown transform or parameter (with the nearest known one),
  // normalize elsewhere than last, for another number of channels, or `auto` (pixel_statistics.h puts numbers in its place).
  Augmenter(const std::vector<TransformSpec>& specs, int channels);

  int channels() const { return channels_; }
  // What the last step does: `normalize`, or without one the plain pixel / 255.
  const PixelNormalization& normalization() const { return normalization_; }
  size_t size() const { return transforms_.size(); }
  // How many transforms at the front draw nothing at random.
  size_t fixed() const;
  // Of what comes out for pictures of a size; not known where it would differ from picture to picture.
  ImageSize OutputSize(ImageSize input) const;
  // [C, H, W] of what comes out, for pictures of the given [C, H, W], or of unknown rank where they differ. Throws kConfig where the
  // outcome would differ from picture to picture.
  TShape OutputShape(const TShape& input) const;
  // True when the pixels go into the batch as they are.
  bool keeps_pixels() const { return transforms_.empty(); }

  // How the transforms from `first` up to `last` go on a picture of this size: a crop, then those from `next` on.
  struct Way {
    CropResize crop;
    size_t next, last;
    RandomStream random;
  };
  Way Begin(int height, int width, RandomStream random, size_t first, size_t last) const;
  // Goes it, to pixels. `from` may be *image; *scratch is memory to use.
  void ToImage(const Way& way, const Image& from, const Frame& frame, Image* image, Image* scratch) const;
  // Goes it, to numbers [C, height, width], or to pixels [height, width, C] that are left to normalise. False, and nothing is written, where
  // another size comes out, which *image then has.
  bool ToPlanes(const Way& way, const Image& from, const Frame& frame, ImageSize size, Image* image, Image* scratch, float* planes) const;
  bool ToPixels(const Way& way, const Image& from, const Frame& frame, ImageSize size, Image* image, Image* scratch, uint8_t* pixels) const;
  // Interleaved pixels [H, W, C] to planes [C, H, W]: (pixel / 255 - mean) / std.
  void ToPlanes(std::span<const uint8_t> pixels, float* planes) const { PixelsToPlanes(pixels, channels_, levels_, planes); }

 private:
  CropResize Go(const Way& way, const Image** from, Frame* frame, Image* image, Image* scratch) const;
  template <typename Write>
  bool GoTo(const Way& way, const Image& from, const Frame& frame, ImageSize size, Image* image, Image* scratch, Write&& write) const;

  std::vector<std::unique_ptr<const Transform>> transforms_;
  int channels_;
  PixelNormalization normalization_;
  PixelLevels levels_;
};

}  // namespace mxtrain::io
