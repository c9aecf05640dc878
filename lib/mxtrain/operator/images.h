// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "mxtrain/operator/property.h"

namespace mxtrain {

// For InferShape: the array has four axes, as images [N, C, H, W] have. Throws kConfig "WHO: WHAT
// [3, 4] must be images [N, C, H, W]".
inline void UnifyImages(TShape* shape, const std::string& who, const std::string& what) {
  if (shape->has_rank() && shape->ndim() != 4)
    Throw(ErrorKind::kConfig, "{}: {} {} must be images [N, C, H, W]", who, what,
          shape->ToString());
  UnifyShape(TShape::OfRank(4), shape, who, what);
}

}  // namespace mxtrain
