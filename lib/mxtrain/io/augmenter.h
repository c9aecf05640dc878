// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data augmentation chain: from an image's decoded pixels through transforms to values in a
// batch.
//
// Consecutive crops, resizes and flips are merged into one CropResize, so only the pixels it needs
// are decoded; the last one writes directly into the batch. The result equals applying each step
// alone.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/base/shape.h"
#include "mxtrain/io/crop_resize.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {

// All steps a chain can contain. Besides the transforms there is `normalize` (mean, std: one number
// or one per channel, in units of 0 .. 1; or from: auto or imagenet), which must be last.
MXTRAIN_API std::vector<TransformInfo> ListTransforms();

// The parameters that are given, the main one under its name. Throws kConfig for an unknown
// transform.
MXTRAIN_API Kwargs NamedKwargs(const TransformSpec& spec);

// `normalize: imagenet` with its mean and std as numbers; other transforms are returned unchanged.
// Throws kConfig for invalid parameters of normalize, among them numbers beside `imagenet`.
MXTRAIN_API TransformSpec WithNumbers(TransformSpec spec);

// The default evaluation chain for a training chain: the same sizes without randomness.
// random_resized_crop becomes a resize to 9/8 of its size and a center crop, random_crop a center
// crop; those of StaysInEvaluation stay, all else is dropped.
MXTRAIN_API std::vector<TransformSpec> EvaluationTransforms(
    const std::vector<TransformSpec>& training);

// Whether it is resize, center_crop, letterbox or normalize.
MXTRAIN_API bool StaysInEvaluation(const TransformSpec& spec);

// Immutable: calls may come from any thread.
class MXTRAIN_API Augmenter {
 public:
  // `channels` (1 or 3): what images are decoded to. Throws kConfig for an unknown transform or
  // parameter (with the nearest known one), and for a normalize that is not last, has another
  // number of channels, or is `auto` (pixel_statistics.h replaces it by numbers).
  Augmenter(const std::vector<TransformSpec>& specs, int channels);

  int channels() const { return channels_; }
  // The final normalization: `normalize`, or pixel / 255 without one.
  const PixelNormalization& normalization() const { return normalization_; }
  size_t size() const { return transforms_.size(); }
  // The first transform that looks where objects are; "" for none.
  std::string ReaderOfObjects() const;
  // Throws kConfig, naming the first that is not, unless all transforms can be applied to deep
  // images: crops, resizes without antialiasing, and flips.
  void RequireDeep() const;
  // Number of leading transforms that are not random.
  size_t fixed() const;
  // Output size for images of a given size; not known if it differs from image to image.
  ImageSize OutputSize(ImageSize input) const;
  // Output [C, H, W] for images of the given [C, H, W], or of unknown rank if they differ. Throws
  // kConfig if the output would differ from image to image.
  TShape OutputShape(const TShape& input) const;
  // Whether pixels go into the batch unchanged, and points with them.
  bool keeps_pixels() const { return transforms_.empty(); }

  // How the transforms `first` to `last` apply to an image of this size, or to the tile of it that
  // `part` names: a crop-resize, then those from `next` on.
  struct Steps {
    CropResize crop;
    size_t next, last;
    RandomStream random;
    ImagePart part = {};
  };
  Steps Begin(int height, int width, RandomStream random, size_t first, size_t last,
              const ImagePart& part = {}) const;
  // Applies it, to pixels, and says what it does to points to the origin of its part. `from` may be
  // *image; *scratch is reusable memory.
  void ToImage(const Steps& steps, const Image& from, const Frame& frame, Image* image,
               Image* scratch) const;
  // Applies it, to values [C, height, width], or to pixels [height, width, C] still to be
  // normalized. Returns false and writes nothing if the result has another size; *image then holds
  // it.
  bool ToPlanes(const Steps& steps, const Image& from, const Frame& frame, ImageSize size,
                Image* image, Image* scratch, float* planes) const;
  bool ToPixels(const Steps& steps, const Image& from, const Frame& frame, ImageSize size,
                Image* image, Image* scratch, uint8_t* pixels) const;
  // Interleaved pixels [H, W, C] to planes [C, H, W]: (pixel / 255 - mean) / std.
  void ToPlanes(std::span<const uint8_t> pixels, float* planes) const {
    PixelsToPlanes(pixels, channels_, levels_, planes);
  }

 private:
  CropResize Run(const Steps& steps, const Image** from, Frame* frame, Image* image,
                 Image* scratch) const;
  template <typename Write>
  bool RunTo(const Steps& steps, const Image& from, const Frame& frame, ImageSize size,
             Image* image, Image* scratch, Write&& write) const;

  std::vector<std::unique_ptr<const Transform>> transforms_;
  std::vector<std::string> names_;  // of the transforms
  int channels_;
  PixelNormalization normalization_;
  PixelLevels levels_;
};

}  // namespace mxtrain::io
