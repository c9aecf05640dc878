#pragma once
// The way of a picture from its decoded pixels into a batch: a chain of transforms, then numbers.
#include <memory>
#include <span>
#include <vector>

#include "mxtrain/base/shape.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {

// Everything that a chain can be made of. Beside the transforms there is `normalize` (mean, std: one number or one per channel, in units of
// 0 .. 1), which stands last.
MXTRAIN_API std::vector<TransformInfo> ListTransforms();

// Immutable: calls may come from any thread.
class MXTRAIN_API Augmenter {
 public:
  // `channels` (1 or 3) is what pictures are decoded to. Throws kConfig: unknown transform or parameter (with the nearest known one),
  // normalize elsewhere than last or for another number of channels.
  Augmenter(const std::vector<TransformSpec>& specs, int channels);

  int channels() const { return channels_; }
  // [C, H, W] of what comes out, for pictures of the given [C, H, W], or of unknown rank where they differ. Throws kConfig where the
  // outcome would differ from picture to picture.
  TShape OutputShape(const TShape& input) const;
  // True when the pixels go into the batch as they are.
  bool keeps_pixels() const { return transforms_.empty(); }

  void Apply(Image* image, Image* scratch, RandomStream random) const;
  // Interleaved pixels [H, W, C] to planes [C, H, W]: (pixel / 255 - mean) / std.
  void ToPlanes(std::span<const uint8_t> pixels, float* planes) const;
  // By how much a picture of this size may be reduced while it is decoded (DecodeOptions::min_scale).
  double MinScale(int height, int width, RandomStream random) const;

 private:
  std::vector<std::unique_ptr<const Transform>> transforms_;
  int channels_;
  std::vector<float> table_;  // [channels][256]: the number that a pixel value becomes
};

}  // namespace mxtrain::io
