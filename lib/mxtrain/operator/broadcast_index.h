// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maps the row-major index of an element of a plain array to the index in a smaller array that is
// broadcast over it.
#include "mxtrain/base/shape.h"

namespace mxtrain {

class BroadcastIndex {
 public:
  // `small` has the rank of `large`; each of its axes has the same length or length 1.
  BroadcastIndex(const TShape& large, const TShape& small)
      : ndim_(large.ndim()), same_(large == small) {
    int64_t step = 1;
    for (int i = ndim_ - 1; i >= 0; --i) {
      length_[i] = large[i];
      stride_[i] = small[i] == 1 ? 0 : step;
      step *= small[i];
    }
  }
  bool same() const { return same_; }
  MXTRAIN_HD int64_t operator()(int64_t i) const {
    if (same_) return i;
    int64_t place = 0;
    for (int k = ndim_ - 1; k >= 0; --k) {
      place += i % length_[k] * stride_[k];
      i /= length_[k];
    }
    return place;
  }

 private:
  int ndim_;
  bool same_;
  int64_t length_[TShape::kMaxDims] = {}, stride_[TShape::kMaxDims] = {};
};

}  // namespace mxtrain
