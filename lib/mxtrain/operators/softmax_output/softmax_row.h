// SPDX-License-Identifier: Apache-2.0
#pragma once
// One of many softmaxes, for a team. Written once for both devices.
#include <cmath>
#include <limits>

#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/softmax_output/softmax_output.h"

namespace mxtrain {

// The offsets of softmax `row` in an array [outer, classes, inner].
struct SoftmaxPlaces {
  SoftmaxView view;
  MXTRAIN_HD int64_t First(int64_t row) const {
    return row / view.inner * view.classes * view.inner + row % view.inner;
  }
  MXTRAIN_HD int64_t At(int64_t row, int64_t k) const { return First(row) + k * view.inner; }
};

// y = softmax(x), or += it. y may be x.
template <typename T>
struct SoftmaxRow {
  SoftmaxPlaces places;
  const T* x;
  T* y;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    using A = AccumulatorOf<T>;
    const int64_t classes = places.view.classes, first = places.First(row),
                  step = places.view.inner;
    A largest = -std::numeric_limits<A>::infinity(), sum = 0;
    for (int64_t k = team.rank(); k < classes; k += team.size())
      largest = LargerOf()(largest, A(x[first + k * step]));
    largest = team.Fold(largest, LargerOf{});
    for (int64_t k = team.rank(); k < classes; k += team.size())
      sum += std::exp(A(x[first + k * step]) - largest);
    sum = team.Fold(sum, AddBoth{});
    for (int64_t k = team.rank(); k < classes; k += team.size()) {
      const int64_t i = first + k * step;
      Assign(req, y, i, std::exp(A(x[i]) - largest) / sum);
    }
  }
};

// f(team, row) for every softmax.
template <typename Device, typename F>
void ForEachSoftmax(const Device& device, const SoftmaxView& view, const F& f) {
  constexpr int64_t kWork = 8;  // cost of an exponential relative to an addition
  if (view.inner > 1) {
    ForColumns(device, view.outer * view.inner, kWork * view.classes, f);
  } else {
    ForRows(device, view.outer * view.inner, kWork * view.classes, f);
  }
}

}  // namespace mxtrain
