#include "mxtrain/operator/window.h"

namespace mxtrain {

TShape WindowParam(const TShape& given, int axes, int64_t fallback, int64_t least, const std::string& who, const char* what) {
  TShape result = TShape::OfRank(axes);
  const bool empty = given.ndim() <= 0;
  if (!empty && given.ndim() != axes) {
    Throw(ErrorKind::kConfig, "{}: {} = {} has {} entries, but the kernel has {} axes", who, what, given.ToTuple(), given.ndim(), axes);
  }
  for (int i = 0; i < axes; ++i) {
    result[i] = empty ? fallback : given[i];
    if (result[i] < least) Throw(ErrorKind::kConfig, "{}: {} = {} has an entry below {}", who, what, given.ToTuple(), least);
  }
  return result;
}

}  // namespace mxtrain
