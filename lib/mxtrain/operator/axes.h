// SPDX-License-Identifier: Apache-2.0
#pragma once
// Axis arguments as users write them.
#include "mxtrain/base/shape.h"

namespace mxtrain {

// The axis of `shape` that `axis` refers to; negative values count from the end. Throws kConfig
// "WHO: axis 3 is out of range for shape [2, 3]".
MXTRAIN_API int CheckAxis(int64_t axis, const TShape& shape, std::string_view who);
// The same when only the rank is known. "WHO: PARAM = 4 is out of range for WHAT with 4 axes; use
// -4 .. 3".
MXTRAIN_API int CheckAxis(int64_t axis, int ndim, std::string_view who, std::string_view param,
                          std::string_view what);

// [1, ..., length, ..., 1] with `length` at `axis`: how an array along one axis is broadcast.
MXTRAIN_API TShape AlongAxis(int ndim, int axis, int64_t length);

// `shape` with a further axis of this length at position `axis`, and without that axis.
MXTRAIN_API TShape WithAxis(const TShape& shape, int axis, int64_t length);
MXTRAIN_API TShape WithoutAxis(const TShape& shape, int axis);

}  // namespace mxtrain
