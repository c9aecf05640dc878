// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/region_scores.h"

namespace mxtrain {

RegionShape UnifyRegions(const std::string& who, RegionShape known, TShape* scores,
                         TShape* offsets) {
  // Twice: what a later array says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    TShape rows{known.images, known.regions, known.columns};
    UnifyShape(*scores, &rows, who, "scores");
    *scores = rows;
    TShape numbers{rows[0], rows[1], rows[2] == TShape::kUnknown ? rows[2] : 4 * rows[2]};
    UnifyShape(*offsets, &numbers, who, "offsets");
    *offsets = numbers;
    known = {numbers[0], numbers[1], numbers[2] == TShape::kUnknown ? numbers[2] : numbers[2] / 4};
  }
  if (known.columns == 0 || known.columns == 1) {
    Throw(ErrorKind::kConfig,
          "{}: scores have shape {}; expected [images, regions, classes + 1], the background first",
          who, scores->ToString());
  }
  return known;
}

}  // namespace mxtrain
