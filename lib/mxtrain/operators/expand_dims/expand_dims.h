// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inserts or removes axes of length one: expand_dims (axis: position in the output) and squeeze
// (axis: which; None: all of length one). The elements are not moved.
#include <optional>

#include "mxtrain/operator/simple_op.h"

namespace mxtrain::expand_dims {

struct ExpandDimsParam : Parameter<ExpandDimsParam> {
  int axis;
  static void Declare(Fields<ExpandDimsParam>& f) {
    f.Add("axis", &ExpandDimsParam::axis)
        .Required()
        .Help("position of the new axis in the output; negative counts from the end");
  }
};

struct SqueezeParam : Parameter<SqueezeParam> {
  std::optional<TShape> axis;
  static void Declare(Fields<SqueezeParam>& f) {
    f.Add("axis", &SqueezeParam::axis)
        .Default(std::nullopt)
        .Help("axes to remove, negative from the end; None: all of length 1");
  }
};

}  // namespace mxtrain::expand_dims
