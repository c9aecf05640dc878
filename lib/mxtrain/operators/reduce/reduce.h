// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions over axes: sum (sum_axis), mean, prod, nansum, nanprod, max (max_axis), min
// (min_axis). Without axes all are reduced and the result has shape (1,). The gradient of max and
// min goes to every element equal to the extreme.
#include <optional>

#include "mxtrain/base/params.h"

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

// Groups the elements of the input, one group per element of the result: a kept and a reduced index
// space, each with strides of the input. Trivially copyable, for kernels.
struct Groups {
  struct Space {
    int ndim = 0;
    int64_t size = 1;
    int64_t dim[TShape::kMaxDims] = {}, stride[TShape::kMaxDims] = {};
    void Add(int64_t length, int64_t step) {
      dim[ndim] = length;
      stride[ndim++] = step;
      size *= length;
    }
    // Offset in the input of the index-th element of this space.
    MXTRAIN_HD int64_t Offset(int64_t index) const {
      int64_t offset = 0;
      for (int i = ndim - 1; i >= 0; --i) {
        offset += index % dim[i] * stride[i];
        index /= dim[i];
      }
      return offset;
    }
  };
  Space kept, reduced;
};

// Throws kConfig for an axis that is out of range or repeated.
MXTRAIN_API Groups MakeGroups(const TShape& shape, const ReduceParam& param, const char* who);
TShape ReducedShape(const TShape& shape, const ReduceParam& param, const char* who);

}  // namespace mxtrain::reduce
