// SPDX-License-Identifier: Apache-2.0
#pragma once
// LRN's norm before the power, which every kernel returns as the hidden output.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operators/lrn/lrn.h"

namespace mxtrain {

struct LRNWindows {
  LRNParam param;
  TShape shape;

  // f(element) for the window of channels around element `at`, at the same position.
  template <typename F>
  MXTRAIN_HD void ForCells(int64_t at, F f) const {
    const int64_t area = shape[2] * shape[3], channel = at / area % shape[1],
                  half = param.nsize / 2;
    const int64_t first = channel > half ? channel - half : 0,
                  last = channel + half < shape[1] - 1 ? channel + half : shape[1] - 1;
    for (int64_t c = first; c <= last; ++c) f(at + (c - channel) * area);
  }

  template <typename T>
  MXTRAIN_HD AccumulatorOf<T> Norm(const T* x, int64_t at) const {
    using A = AccumulatorOf<T>;
    A sum = 0;
    ForCells(at, [&](int64_t j) { sum += A(x[j]) * A(x[j]); });
    return A(param.knorm) + A(param.alpha) / A(param.nsize) * sum;
  }
};

}  // namespace mxtrain
