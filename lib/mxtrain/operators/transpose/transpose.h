// SPDX-License-Identifier: Apache-2.0
#pragma once
// Permutes axes: transpose (axes; none: all reversed) and SwapAxis (swapaxes: swaps dim1 and dim2).
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::transpose {

struct TransposeParam : Parameter<TransposeParam> {
  TShape axes;
  static void Declare(Fields<TransposeParam>& f) {
    f.Add("axes", &TransposeParam::axes)
        .Default(TShape(std::span<const int64_t>()))
        .Help("axis i of the output is axis axes[i] of the data; () reverses all");
  }
};

struct SwapAxisParam : Parameter<SwapAxisParam> {
  int dim1, dim2;
  static void Declare(Fields<SwapAxisParam>& f) {
    f.Add("dim1", &SwapAxisParam::dim1).Default(0).Help("an axis; negative counts from the end");
    f.Add("dim2", &SwapAxisParam::dim2).Default(0).Help("the axis to swap it with");
  }
};

// Axis i of the output is axis order[i] of the data.
struct Order {
  int axis[TShape::kMaxDims] = {};
};
// Throw kConfig for axes that are out of range, missing or repeated.
MXTRAIN_API Order OrderOf(const TransposeParam& param, const TShape& shape);
MXTRAIN_API Order OrderOf(const SwapAxisParam& param, const TShape& shape);

}  // namespace mxtrain::transpose
