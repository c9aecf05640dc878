// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a net says of regions of interest, R of each image:
//
//   scores   [N, R, classes + 1]      logits; the first is that of the background
//   offsets  [N, R, 4 (classes + 1)]  of the box of each class from the region
//                                     (operator/box_offsets.h), over the variances
#include <string>

#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operator/class_scores.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct RegionShape {
  int64_t images = TShape::kUnknown, regions = TShape::kUnknown, columns = TShape::kUnknown;
};
// Completes the shapes of both, with what is known besides; kUnknown what does not follow; columns:
// of the scores. Throws kConfig on a contradiction, and where there is no class.
MXTRAIN_API RegionShape UnifyRegions(const std::string& who, RegionShape known, TShape* scores,
                                     TShape* offsets);

// For kernels. Row i is region i % R of image i / R.
template <typename T>
struct RegionScores : ClassScores<T> {
  using C = ComputeOf<T>;
  int64_t images, regions;
  const T* offsets;

  RegionScores(const TBlob& of_scores, const TBlob& of_offsets)
      : ClassScores<T>{of_scores.shape[2], static_cast<const T*>(of_scores.data)},
        images(of_scores.shape[0]),
        regions(of_scores.shape[1]),
        offsets(static_cast<const T*>(of_offsets.data)) {}

  MXTRAIN_HD int64_t rows() const { return images * regions; }
  MXTRAIN_HD int64_t OffsetIndex(int64_t row, int64_t column, int k) const {
    return (row * this->columns + column) * 4 + k;
  }
  MXTRAIN_HD C Offset(int64_t row, int64_t column, int k) const {
    return static_cast<C>(offsets[OffsetIndex(row, column, k)]);
  }
};

}  // namespace mxtrain
