// SPDX-License-Identifier: Apache-2.0
#pragma once
// How well edges between classes of pixels are matched: the boundary F measure (Csurka et al. 2013,
// "What is a good evaluation measure for semantic segmentation?"). Overlap hardly sees them: most
// pixels of an object lie inside.
#include <cstdint>
#include <span>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// The boundary of one class in one image: pixels of it beside a pixel (above, below, left, right)
// of another class.
struct MXTRAIN_API BoundaryMatch {
  int64_t labelled = 0, guessed = 0;  // pixels of the boundary in the label and in the prediction
  // Of them, those that have one of the other within the tolerance.
  int64_t labelled_met = 0, guessed_met = 0;
  // 2 p r / (p + r) of the precision p = guessed_met / guessed and the recall r = labelled_met /
  // labelled; 0 if either is 0 or has no pixels. NaN without a boundary in the label.
  double F() const;
};

// Of each class. `truth` and `guesses`: [height, width]; where `truth` is negative no pixel belongs
// to a boundary or makes one. Two pixels are near each other if their centers are at most
// `tolerance` pixels apart.
MXTRAIN_API std::vector<BoundaryMatch> MatchBoundaries(std::span<const int32_t> truth,
                                                       std::span<const int32_t> guesses,
                                                       int64_t height, int64_t width,
                                                       int64_t classes, double tolerance);

// The tolerance of the authors: 0.75 % of the diagonal, at least one pixel.
MXTRAIN_API double BoundaryTolerance(int64_t height, int64_t width);

}  // namespace mxtrain
