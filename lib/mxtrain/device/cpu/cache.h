// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cache properties for memory-bound kernels.
#include <cstdint>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Bytes of the last-level cache, one core complex's share of it; 32 MiB if the system does not
// report it.
MXTRAIN_API int64_t LastLevelCacheBytes();

}  // namespace mxtrain
