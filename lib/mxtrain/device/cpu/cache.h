#pragma once
// What a kernel that moves memory must know of the caches.
#include <cstdint>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Bytes of the last cache before memory, one core complex's share of it; 32 MiB where the system does not say.
MXTRAIN_API int64_t LastLevelCacheBytes();

}  // namespace mxtrain
