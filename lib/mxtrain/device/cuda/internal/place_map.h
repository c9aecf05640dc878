// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layout of an array as device code uses it: offsets of a layout (blocked_layout.h) as digits
// in a mixed radix. Host and device; trivially copyable.
#include <cstdint>

#include "mxtrain/base/macros.h"
#include "mxtrain/device/layout.h"

namespace mxtrain::cuda {

class PlaceMap {
 public:
  static constexpr int kMaxDigits = 16;

  // Plain and blocked layouts; others throw kBug.
  explicit PlaceMap(const TensorSpec& spec);

  // Number of elements including padding.
  int64_t size() const { return size_; }
  int ndim() const { return ndim_; }

  // The index of the element at offset `place`; false in padding.
  MXTRAIN_HD bool IndexAt(int64_t place, int64_t* index) const {
    for (int axis = 0; axis < ndim_; ++axis) index[axis] = 0;
    for (int d = num_digits_ - 1; d >= 0; --d) {
      const Digit& digit = digits_[d];
      index[digit.axis] += place % digit.size * digit.weight;
      place /= digit.size;
    }
    for (int axis = 0; axis < ndim_; ++axis) {
      if (index[axis] >= length_[axis]) return false;
    }
    return true;
  }

  // The offset of the element at `index`.
  MXTRAIN_HD int64_t PlaceOf(const int64_t* index) const {
    int64_t place = 0;
    for (int d = 0; d < num_digits_; ++d) {
      const Digit& digit = digits_[d];
      place = place * digit.size + index[digit.axis] / digit.weight % digit.size;
    }
    return place;
  }

 private:
  // From outermost to innermost: a piece of an axis, with `size` values, each worth `weight`
  // indices of that axis.
  struct Digit {
    int axis;
    int64_t size;
    int64_t weight;
  };
  int ndim_ = 0;
  int num_digits_ = 0;
  int64_t size_ = 0;
  int64_t length_[TShape::kMaxDims] = {};
  Digit digits_[kMaxDigits] = {};
};

}  // namespace mxtrain::cuda
