#pragma once
// Axes of length one come and go: expand_dims (axis: where in the output) and squeeze (axis: which; None: all of length one). The elements
// stay where they are.
#include <optional>

#include "mxtrain/operator/simple_op.h"

namespace mxtrain::expand_dims {

struct ExpandDimsParam : Parameter<ExpandDimsParam> {
  int axis;
  static void Declare(Fields<ExpandDimsParam>& f) {
    f.Add("axis", &ExpandDimsParam::axis).Required().Help("place of the new axis in the output; negative counts from its end");
  }
};

struct SqueezeParam : Parameter<SqueezeParam> {
  std::optional<TShape> axis;
  static void Declare(Fields<SqueezeParam>& f) {
    f.Add("axis", &SqueezeParam::axis)
        .Default(std::nullopt)
        .Help("axes that are dropped, negative ones from the end; None: all of length 1");
  }
};

}  // namespace mxtrain::expand_dims
