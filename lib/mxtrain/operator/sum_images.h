// SPDX-License-Identifier: Apache-2.0
#pragma once
// The losses of detectors that learn of a part of the anchors or regions of each image; for
// kernels.
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/rows.h"

namespace mxtrain {

// The factor of a loss per image that is a mean over all that something is learnt of.
template <typename C>
MXTRAIN_HD C ShareOfImage(int64_t images, int64_t learnt) {
  return static_cast<C>(images) / static_cast<C>(learnt > 1 ? learnt : 1);
}

// A team adds the losses of an image's rows. Terms: LossOf(row), of row image * rows + i.
template <typename T, typename Terms>
struct SumImages {
  using C = ComputeOf<T>;
  Terms terms;
  int64_t rows;    // of an image
  const C* share;  // [1]: ShareOfImage
  OpReqType req;
  T* out;  // [images]

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t image) const {
    double sum = 0;
    for (int64_t i = team.rank(); i < rows; i += team.size())
      sum += static_cast<double>(terms.LossOf(image * rows + i));
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) Assign(req, out, image, static_cast<C>(sum) * *share);
  }
};

}  // namespace mxtrain
