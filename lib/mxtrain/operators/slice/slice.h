// SPDX-License-Identifier: Apache-2.0
#pragma once
// Part of an array: slice_axis (a range of one axis); and reverse (flip). The gradient outside the
// slice is zero.
#include <optional>

#include "mxtrain/operator/simple_op.h"
#include "mxtrain/operator/strided_view.h"

namespace mxtrain::slice {

struct SliceAxisParam : Parameter<SliceAxisParam> {
  int axis;
  int64_t begin;
  std::optional<int64_t> end;
  static void Declare(Fields<SliceAxisParam>& f) {
    f.Add("axis", &SliceAxisParam::axis)
        .Required()
        .Help("axis to slice; negative counts from the end");
    f.Add("begin", &SliceAxisParam::begin)
        .Required()
        .Help("first index; negative counts from the end");
    f.Add("end", &SliceAxisParam::end)
        .Required()
        .Help("index after the last; negative counts from the end; None: the end");
  }
};

struct ReverseParam : Parameter<ReverseParam> {
  TShape axis;
  static void Declare(Fields<ReverseParam>& f) {
    f.Add("axis", &ReverseParam::axis).Required().Help("axes to reverse; negative from the end");
  }
};

// The output's elements as a view of an array of shape `data`. Throws kConfig for axes and ranges
// outside the shape.
MXTRAIN_API StridedView ViewOf(const SliceAxisParam& param, const TShape& data);
MXTRAIN_API StridedView ViewOf(const ReverseParam& param, const TShape& data);

}  // namespace mxtrain::slice
