// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/resource.h"

#include "mxtrain/base/error.h"

namespace mxtrain {

void* Resource::Check(int64_t wanted) const {
  if (type != ResourceRequest::kTempSpace)
    Throw(ErrorKind::kBug, "{}: scratch space was taken from a request for random numbers", who);
  if (wanted < 0 || wanted > bytes) {
    Throw(ErrorKind::kBug, "{}: {} bytes of scratch space were taken, but its plan requested {}",
          who, wanted, bytes);
  }
  return space;
}

}  // namespace mxtrain
