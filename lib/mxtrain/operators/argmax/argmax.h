// SPDX-License-Identifier: Apache-2.0
#pragma once
// argmax and argmin: the index along an axis of the largest or smallest element, the first of ties,
// in the type of the data. A NaN wins, so that it is not overlooked. Without an axis the array
// counts as one row. argmax_channel: argmax along axis 1 of [N, K, ...]. The gradient is zero.
#include <optional>

#include "mxtrain/base/params.h"
#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/axis_split.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/rows.h"

namespace mxtrain::argmax {

struct ArgParam : Parameter<ArgParam> {
  std::optional<int> axis;
  bool keepdims = false;
  static void Declare(Fields<ArgParam>& f) {
    f.Add("axis", &ArgParam::axis)
        .Default(std::nullopt)
        .Help("axis to search, negative from the end; None: the whole array");
    f.Add("keepdims", &ArgParam::keepdims)
        .Default(false)
        .Help("the searched axis stays, with length 1");
  }
};

inline ArgParam ChannelParam() {
  ArgParam param;
  param.axis = 1;
  return param;
}

// The columns to search. A column is divided into slices, so that a few long ones occupy all
// threads.
struct Columns {
  AxisSplit split;
  Slices slices;

  Columns(const TShape& shape, const ArgParam& param, const char* who) {
    if (param.axis) {
      split = AxisSplit(shape, CheckAxis(*param.axis, shape, who));
    } else {
      split.length = shape.Size();
    }
    slices = Slices(count(), split.length);
  }
  int64_t count() const { return split.outer * split.inner; }
  bool whole() const { return slices.count == 1; }
};

// An element and its index in its column.
struct Found {
  double value = 0;
  int64_t place = -1;  // none yet
};

struct Largest {
  static constexpr const char* kName = "argmax";
  template <typename A>
  MXTRAIN_HD static bool Better(A x, A best) {
    return x > best;
  }
};
struct Smallest {
  static constexpr const char* kName = "argmin";
  template <typename A>
  MXTRAIN_HD static bool Better(A x, A best) {
    return x < best;
  }
};

template <typename F>
struct BetterOf {
  MXTRAIN_HD Found operator()(const Found& a, const Found& b) const {
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    const Found &first = a.place < b.place ? a : b, &second = a.place < b.place ? b : a;
    if (first.value != first.value) return first;
    return F::Better(second.value, first.value) || second.value != second.value ? second : first;
  }
};

// Where results go: those of slices to `parts`, [columns, slices]; those of whole columns to y.
template <typename T>
struct Results {
  Columns columns;
  Found* parts;
  T* y;
  OpReqType req;
  MXTRAIN_HD void Put(int64_t column, int64_t slice, const Found& best) const {
    if (columns.slices.count > 1) {
      parts[column * columns.slices.count + slice] = best;
    } else {
      PutColumn(column, best);
    }
  }
  MXTRAIN_HD void PutColumn(int64_t column, const Found& best) const {
    Assign(req, y, column, static_cast<ComputeOf<T>>(best.place));
  }
};

}  // namespace mxtrain::argmax
