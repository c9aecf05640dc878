// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>

#include "mxtrain/base/dtype.h"

namespace mxtrain {

// Every integer from 0 up to this one is exact in `type`.
inline int64_t LargestExact(DType type) {
  switch (type) {
    case DType::kFloat32:
      return int64_t{1} << 24;
    case DType::kFloat64:
      return int64_t{1} << 53;
    case DType::kFloat16:
      return 1 << 11;
    case DType::kBfloat16:
      return 1 << 8;
    case DType::kUint8:
      return 255;
    case DType::kInt32:
      return std::numeric_limits<int32_t>::max();
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

}  // namespace mxtrain
