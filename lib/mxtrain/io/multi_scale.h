// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training on images of several sizes, which change from batch to batch (Redmon and Farhadi,
// arXiv 1612.08242, section 2: "multi-scale training"): a net learns to see objects larger and
// smaller than they are in the files. Evaluation and prediction keep one size.
#include <cstdint>
#include <vector>

#include "mxtrain/io/transform.h"

namespace mxtrain::io {

// One chain of transforms for each size. Batch b of an epoch has that of Draw(...): `batches`
// successive ones have the same, so that what depends on the size changes less often.
struct MXTRAIN_API MultiScale {
  // Of the same transforms, the areas of their images rising.
  std::vector<std::vector<TransformSpec>> chains;
  int64_t batches = 1;
  int64_t epochs = -1;  // number of first epochs with several sizes; negative: all
  size_t usual = 0;     // the chain of the other epochs

  // The chain of a batch: a function of (seed, epoch, batch) alone, so the same on all ranks and
  // after a resume.
  size_t Draw(uint64_t seed, int64_t epoch, int64_t batch) const;
};

// `usual` and the sizes beside it whose shorter side is a multiple of `multiple` from `least` to
// `most` times that of `usual`, the longer one in proportion, rounded to a multiple; by rising
// area. `multiple` at least 1, 0 < least <= most.
MXTRAIN_API std::vector<ImageSize> SizesBeside(ImageSize usual, double least, double most,
                                               int64_t multiple);

// The chain, which makes images of the size `usual`, for another size: every `size` that it
// names is scaled alike; the padding of a random_crop stays. Throws kConfig, naming the sizes, if
// its images then have not that size.
MXTRAIN_API std::vector<TransformSpec> ScaledTransforms(const std::vector<TransformSpec>& chain,
                                                        ImageSize usual, ImageSize size);

}  // namespace mxtrain::io
