// SPDX-License-Identifier: Apache-2.0
#pragma once
// norm: the sum of absolute values (ord 1) or the root of the sum of squares (ord 2) over axes. The
// gradient is g sign(x) or g x / norm; 0 if the norm is 0.
#include "mxtrain/operators/reduce/reduce.h"

namespace mxtrain::norm {

struct NormParam : Parameter<NormParam> {
  int ord = 2;
  std::optional<TShape> axis;
  bool keepdims = false;
  std::optional<DType> out_dtype;
  static void Declare(Fields<NormParam>& f) {
    f.Add("ord", &NormParam::ord)
        .Default(2)
        .Range(1, 2)
        .Help("1: sum of absolute values; 2: Euclidean");
    f.Add("axis", &NormParam::axis)
        .Default(std::nullopt)
        .Help("axes to reduce, negative from the end; None: all");
    f.Add("keepdims", &NormParam::keepdims).Default(false).Help("keep reduced axes with length 1");
    f.Add("out_dtype", &NormParam::out_dtype)
        .Default(std::nullopt)
        .Help("None; only the type of the data is supported");
  }
  reduce::ReduceParam Axes() const {
    reduce::ReduceParam axes;
    axes.axis = axis;
    axes.keepdims = keepdims;
    return axes;
  }
};

}  // namespace mxtrain::norm
