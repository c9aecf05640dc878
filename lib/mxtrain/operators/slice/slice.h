#pragma once
// Part of an array: slice_axis (a range of one axis), and the array backwards: reverse (flip). The gradient of what was left out is zero.
#include <optional>

#include "mxtrain/operator/simple_op.h"
#include "mxtrain/operator/strided_view.h"

namespace mxtrain::slice {

struct SliceAxisParam : Parameter<SliceAxisParam> {
  int axis;
  int64_t begin;
  std::optional<int64_t> end;
  static void Declare(Fields<SliceAxisParam>& f) {
    f.Add("axis", &SliceAxisParam::axis).Required().Help("axis that is cut; negative counts from the end");
    f.Add("begin", &SliceAxisParam::begin).Required().Help("first index that is kept; negative counts from the end");
    f.Add("end", &SliceAxisParam::end).Required().Help("first index behind it; negative counts from the end, None is the end");
  }
};

struct ReverseParam : Parameter<ReverseParam> {
  TShape axis;
  static void Declare(Fields<ReverseParam>& f) {
    f.Add("axis", &ReverseParam::axis).Required().Help("axes along which the order is turned round; negative ones from the end");
  }
};

// The elements of the output in an array of shape `data`. Throws kConfig for axes and ranges that the shape does not have.
MXTRAIN_API StridedView ViewOf(const SliceAxisParam& param, const TShape& data);
MXTRAIN_API StridedView ViewOf(const ReverseParam& param, const TShape& data);

}  // namespace mxtrain::slice
