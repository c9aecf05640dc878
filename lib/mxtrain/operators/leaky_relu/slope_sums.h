// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of prelu's gamma: for each of its elements, the sum of g x over the negative data
// elements that use it. In double; each sum is divided into slices, so that a gamma of one element
// or few channels also occupies a whole team. The division depends only on shapes: the result is
// the same for every number of threads.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/rows.h"

namespace mxtrain {

namespace slope_sums {

// Some axes of the data, innermost first; adjacent axes are merged.
struct Axes {
  int ndim = 0;
  int64_t size = 1;
  int64_t dim[TShape::kMaxDims] = {}, stride[TShape::kMaxDims] = {};

  void AddExternal(int64_t length, int64_t step) {
    size *= length;
    if (ndim > 0 && dim[ndim - 1] * stride[ndim - 1] == step) {
      dim[ndim - 1] *= length;
      return;
    }
    dim[ndim] = length;
    stride[ndim++] = step;
  }
  MXTRAIN_HD int64_t Offset(int64_t index) const {
    int64_t offset = 0;
    for (int i = 0; i < ndim; ++i) {
      offset += index % dim[i] * stride[i];
      index /= dim[i];
    }
    return offset;
  }
};

template <typename T>
MXTRAIN_HD double Term(T g, T x) {
  return static_cast<double>(x) > 0 ? 0 : static_cast<double>(g) * static_cast<double>(x);
}

// A slice of the sum for one element of gamma.
template <typename T>
struct PartRow {
  Axes kept, summed;
  int64_t slices;
  const T *g, *x;
  double* parts;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    const int64_t at = kept.Offset(task / slices), slice = task % slices;
    const int64_t begin = summed.size * slice / slices, end = summed.size * (slice + 1) / slices;
    double sum = 0;
    for (int64_t i = begin + team.rank(); i < end; i += team.size()) {
      const int64_t place = at + summed.Offset(i);
      sum += Term(g[place], x[place]);
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) parts[task] = sum;
  }
};
struct JoinParts {
  int64_t slices;
  const double* parts;
  double* sums;
  MXTRAIN_HD void operator()(int64_t i) const {
    double sum = 0;
    for (int64_t slice = 0; slice < slices; ++slice) sum += parts[i * slices + slice];
    sums[i] = sum;
  }
};

}  // namespace slope_sums

class SlopeSums {
  using Axes = slope_sums::Axes;

 public:
  // `gamma` has the rank of `data`; each of its axes has the same length or length 1.
  SlopeSums(const TShape& data, const TShape& gamma) {
    int64_t stride = 1;
    for (int i = data.ndim() - 1; i >= 0; stride *= data[i--])
      (gamma[i] == data[i] ? kept_ : summed_).AddExternal(data[i], stride);
    const int64_t by_gamma = kTasks / std::max<int64_t>(kept_.size, 1),
                  by_work = summed_.size * kept_.size / kParallelGrain;
    slices_ =
        std::clamp<int64_t>(std::min(by_gamma, by_work), 1, std::max<int64_t>(summed_.size, 1));
  }

  int64_t workspace_bytes() const {
    return (slices_ + 1) * kept_.size * static_cast<int64_t>(sizeof(double));
  }

  // One sum per element of gamma, at the start of the workspace, on any device.
  template <typename Device, typename T>
  const double* RunRows(const Device& device, const T* g, const T* x, double* workspace) const {
    double* parts = workspace + kept_.size;
    ForRows(device, kept_.size * slices_, CeilDivide(summed_.size, slices_),
            slope_sums::PartRow<T>{kept_, summed_, slices_, g, x, parts});
    Launch(device, kept_.size, slope_sums::JoinParts{slices_, parts, workspace});
    return workspace;
  }

  // A faster version for the CPU.
  template <typename T>
  const double* Run(const T* g, const T* x, double* workspace) const {
    double* parts = workspace + kept_.size;
    const int64_t grain =
        std::max<int64_t>(1, kParallelGrain * slices_ / std::max<int64_t>(summed_.size, 1));
    ParallelFor(kept_.size * slices_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t at = kept_.Offset(task / slices_), slice = task % slices_;
        parts[task] = SumOf(g + at, x + at, summed_.size * slice / slices_,
                            summed_.size * (slice + 1) / slices_);
      }
    });
    for (int64_t i = 0; i < kept_.size; ++i) {
      workspace[i] = 0;
      for (int64_t slice = 0; slice < slices_; ++slice) workspace[i] += parts[i * slices_ + slice];
    }
    return workspace;
  }

 private:
  static constexpr int64_t kTasks = 256;  // more than any team, so that its members finish together
  // Independent sums in parallel, to hide the latency of the adder.
  static constexpr int kLanes = 8;

  // Over the elements [begin, end) of the summed axes.
  template <typename T>
  double SumOf(const T* g, const T* x, int64_t begin, int64_t end) const {
    double lanes[kLanes] = {};
    const int64_t row = summed_.ndim ? summed_.dim[0] : 1,
                  step = summed_.ndim ? summed_.stride[0] : 0;
    while (begin < end) {
      const int64_t length = std::min(row - begin % row, end - begin), at = summed_.Offset(begin);
      int64_t i = 0;
      for (; i + kLanes <= length; i += kLanes) {
        for (int k = 0; k < kLanes; ++k)
          lanes[k] += slope_sums::Term(g[at + (i + k) * step], x[at + (i + k) * step]);
      }
      for (; i < length; ++i) lanes[0] += slope_sums::Term(g[at + i * step], x[at + i * step]);
      begin += length;
    }
    double sum = 0;
    for (double lane : lanes) sum += lane;
    return sum;
  }
  Axes kept_, summed_;
  int64_t slices_ = 1;
};

}  // namespace mxtrain
