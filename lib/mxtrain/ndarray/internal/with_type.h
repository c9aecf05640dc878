// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dispatch on the element type. Private to ndarray.
#include "mxtrain/base/dtype.h"
#include "mxtrain/base/error.h"

namespace mxtrain {

// Calls f with a value of the element type; the value itself is irrelevant.
template <typename F>
void WithType(DType type, F&& f) {
  switch (type) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kFloat16:
      return f(float16{});
    case DType::kBfloat16:
      return f(bfloat16{});
    case DType::kUint8:
      return f(uint8_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUnknown:
      break;
  }
  Throw(ErrorKind::kBug, "array has unknown element type {}", static_cast<int>(type));
}

}  // namespace mxtrain
