// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images as a net gives them.
#include <span>

#include "mxtrain/base/shape.h"
#include "mxtrain/io/image.h"

namespace mxtrain::tasks {

// `planes`: of one example, pixel / 255; what is below 0 or above 1 is black or white. `shape`:
// [N, 1 or 3, H, W].
io::Image ImageOfPlanes(std::span<const float> planes, const TShape& shape);

}  // namespace mxtrain::tasks
