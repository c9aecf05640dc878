// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/cache.h"

#include <unistd.h>

namespace mxtrain {

int64_t LastLevelCacheBytes() {
  static const int64_t bytes = [] {
    const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return size > 0 ? static_cast<int64_t>(size) : int64_t{32} << 20;
  }();
  return bytes;
}

}  // namespace mxtrain
