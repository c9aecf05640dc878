// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/axes.h"

#include "mxtrain/base/error.h"

namespace mxtrain {

int CheckAxis(int64_t axis, const TShape& shape, std::string_view who) {
  const int64_t meant = axis < 0 ? axis + shape.ndim() : axis;
  if (meant < 0 || meant >= shape.ndim()) {
    Throw(ErrorKind::kConfig, "{}: axis {} is out of range for shape {}", who, axis,
          shape.ToString());
  }
  return static_cast<int>(meant);
}

int CheckAxis(int64_t axis, int ndim, std::string_view who, std::string_view param,
              std::string_view what) {
  const int64_t meant = axis < 0 ? axis + ndim : axis;
  if (meant < 0 || meant >= ndim) {
    Throw(ErrorKind::kConfig, "{}: {} = {} is out of range for {} with {} axes; use {} .. {}", who,
          param, axis, what, ndim, -ndim, ndim - 1);
  }
  return static_cast<int>(meant);
}

TShape AlongAxis(int ndim, int axis, int64_t length) {
  std::vector<int64_t> dims(static_cast<size_t>(ndim), 1);
  dims[static_cast<size_t>(axis)] = length;
  return TShape(dims);
}

TShape WithAxis(const TShape& shape, int axis, int64_t length) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.insert(dims.begin() + axis, length);
  return TShape(dims);
}

TShape WithoutAxis(const TShape& shape, int axis) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.erase(dims.begin() + axis);
  return TShape(dims);
}

}  // namespace mxtrain
