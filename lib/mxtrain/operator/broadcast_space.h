// SPDX-License-Identifier: Apache-2.0
#pragma once
// The index space of an operation on several plain arrays that are broadcast over one shape: which
// element of each belongs to an element of that shape. Axes are merged where all arrays allow it.
// Trivially copyable, for kernels; at() needs no division by a variable.
#include <algorithm>
#include <array>
#include <cstddef>

#include "mxtrain/base/shape.h"
#include "mxtrain/operator/fast_divider.h"

namespace mxtrain {

template <int kArrays>
class BroadcastSpace {
 public:
  using Offsets = std::array<int64_t, static_cast<size_t>(kArrays)>;

  // Each of `shapes` has the rank of `whole`; each of its axes has the same length or length 1.
  BroadcastSpace(const TShape& whole, const std::array<const TShape*, kArrays>& shapes) {
    for (int i = 0; i < whole.ndim(); ++i) {
      Offsets step{};
      for (int a = 0; a < kArrays; ++a) {
        const TShape& shape = *shapes[static_cast<size_t>(a)];
        step[static_cast<size_t>(a)] =
            shape[i] == whole[i] ? shape.Product(i + 1, shape.ndim()) : 0;
      }
      Add(whole[i], step);
    }
    if (ndim_ == 0) Add(1, Offsets{}, /*keep=*/true);
    size_ = whole.Size();
    for (int i = 0; i < ndim_; ++i) divider_[i] = FastDivider(length_[i]);
    for (int a = 0; a < kArrays; ++a) period_[static_cast<size_t>(a)] = PeriodOf(a);
  }

  int64_t size() const { return size_; }
  int ndim() const { return ndim_; }
  int64_t length(int axis) const { return length_[axis]; }
  int64_t stride(int axis, int array) const { return stride_[axis][static_cast<size_t>(array)]; }
  // The elements of `array`, in their order, are repeated with this period over the whole shape:
  // its size when it is not broadcast, 0 when there is no such order.
  int64_t period(int array) const { return period_[static_cast<size_t>(array)]; }
  bool Whole(int array) const { return period(array) == size_; }

  // The offsets of the element `index` of the whole shape, in row-major order.
  MXTRAIN_HD Offsets at(int64_t index) const {
    Offsets offsets{};
    for (int i = ndim_ - 1; i > 0; --i) {
      int64_t rest, k;
      divider_[i].Divide(index, &rest, &k);
      for (int a = 0; a < kArrays; ++a) offsets[a] += k * stride_[i][a];
      index = rest;
    }
    for (int a = 0; a < kArrays; ++a) offsets[a] += index * stride_[0][a];
    return offsets;
  }

 private:
  void Add(int64_t length, const Offsets& step, bool keep = false) {
    if (length == 1 && !keep) return;
    bool merges = ndim_ > 0;
    for (size_t a = 0; a < static_cast<size_t>(kArrays) && merges; ++a)
      merges = stride_[ndim_ - 1][a] == length * step[a];
    if (merges) {
      length_[ndim_ - 1] *= length;
      stride_[ndim_ - 1] = step;
    } else {
      length_[ndim_] = length;
      stride_[ndim_++] = step;
    }
  }

  int64_t PeriodOf(int array) const {
    int64_t period = 1;
    int i = ndim_ - 1;
    for (; i >= 0 && stride(i, array) == period; --i) period *= length_[i];
    for (; i >= 0; --i) {
      if (stride(i, array) != 0) return 0;
    }
    return period;
  }

  int ndim_ = 0;
  int64_t size_ = 1;
  int64_t length_[TShape::kMaxDims] = {};
  Offsets stride_[TShape::kMaxDims] = {};
  FastDivider divider_[TShape::kMaxDims];
  Offsets period_{};
};

// Copies elements [begin, begin + n) of the whole shape from `array` (number `which`), where they
// are broadcast, to `to`.
template <int kArrays, typename T>
void GatherBroadcast(const BroadcastSpace<kArrays>& space, int which, const T* array, int64_t begin,
                     int64_t n, T* to) {
  const int last = space.ndim() - 1;
  const int64_t run = space.length(last), step = space.stride(last, which);
  int64_t index[TShape::kMaxDims] = {}, rest = begin, offset = 0;
  for (int i = last; i >= 0; --i) {
    index[i] = i > 0 ? rest % space.length(i) : rest;
    rest /= space.length(i);
    offset += index[i] * space.stride(i, which);
  }
  for (int64_t done = 0; done < n;) {
    const int64_t count = std::min(run - index[last], n - done);
    const T* from = array + offset;
    if (step == 0) {
      std::fill_n(to + done, count, *from);
    } else if (step == 1) {
      std::copy_n(from, count, to + done);
    } else {
      for (int64_t k = 0; k < count; ++k) to[done + k] = from[k * step];
    }
    done += count;
    // The next run: back to the start of this axis, one further along the axis before.
    offset -= index[last] * step;
    index[last] = 0;
    for (int i = last - 1; i >= 0; --i) {
      offset += space.stride(i, which);
      if (++index[i] < space.length(i)) break;
      offset -= index[i] * space.stride(i, which);
      index[i] = 0;
    }
  }
}

}  // namespace mxtrain
