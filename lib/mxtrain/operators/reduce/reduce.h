// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions over axes: sum (sum_axis), mean, prod, nansum, nanprod, max (max_axis), min
// (min_axis). Without axes all are reduced and the result has shape (1,). The gradient of max and
// min goes to every element equal to the extreme.
#include <optional>

#include "mxtrain/base/params.h"
#include "mxtrain/operator/reduction.h"

namespace mxtrain::reduce {

struct ReduceParam : Parameter<ReduceParam> {
  std::optional<TShape> axis;
  bool keepdims = false, exclude = false;
  static void Declare(Fields<ReduceParam>& f) {
    f.Add("axis", &ReduceParam::axis)
        .Default(std::nullopt)
        .Help("axes to reduce, negative from the end; None or (): all");
    f.Add("keepdims", &ReduceParam::keepdims)
        .Default(false)
        .Help("keep reduced axes with length 1");
    f.Add("exclude", &ReduceParam::exclude)
        .Default(false)
        .Help("reduce all axes except the given ones");
  }
};

// The axes that are reduced. Throws kConfig for an axis that is out of range or repeated.
MXTRAIN_API AxisFlags FlagsOf(const TShape& shape, const ReduceParam& param, const char* who);
MXTRAIN_API TShape ReducedShape(const TShape& shape, const ReduceParam& param, const char* who);
// With length 1 in place of every reduced axis.
MXTRAIN_API TShape KeptShape(const TShape& shape, const AxisFlags& reduced);

}  // namespace mxtrain::reduce
