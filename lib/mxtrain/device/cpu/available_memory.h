#pragma once
// How much memory may still be taken.
#include <cstdint>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Bytes that the machine, and the control group that this process runs in, have left.
MXTRAIN_API int64_t AvailableMemory();

}  // namespace mxtrain
