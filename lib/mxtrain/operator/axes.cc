#include "mxtrain/operator/axes.h"

#include "mxtrain/base/error.h"

namespace mxtrain {

int CheckAxis(int64_t axis, const TShape& shape, std::string_view who) {
  const int64_t meant = axis < 0 ? axis + shape.ndim() : axis;
  if (meant < 0 || meant >= shape.ndim()) {
    Throw(ErrorKind::kConfig, "{}: axis {} is out of range for shape {}", who, axis, shape.ToString());
  }
  return static_cast<int>(meant);
}

}  // namespace mxtrain
