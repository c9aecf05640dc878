// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much more memory can be allocated.
#include <cstdint>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Bytes left on the machine and in the control group of this process.
MXTRAIN_API int64_t AvailableMemory();

}  // namespace mxtrain
