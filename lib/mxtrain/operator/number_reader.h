// SPDX-License-Identifier: Apache-2.0
#pragma once
// Labels, indices and conditions: arrays whose type is known only at run time.
#include <cstdint>
#include <limits>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/wrapping_int.h"

namespace mxtrain {

// Reads an array of any type.
struct NumberReader {
  const void* data = nullptr;
  DType type = DType::kFloat32;

  NumberReader() = default;
  NumberReader(const void* array, DType of) : data(array), type(of) {}
  explicit NumberReader(const TBlob& array) : data(array.data), type(array.type) {}

  MXTRAIN_HD double Number(int64_t i) const {
    switch (type) {
      case DType::kFloat32:
        return At<float>(i);
      case DType::kFloat64:
        return At<double>(i);
      case DType::kFloat16:
        return At<float16>(i);
      case DType::kBfloat16:
        return At<bfloat16>(i);
      case DType::kUint8:
        return At<uint8_t>(i);
      case DType::kInt32:
        return At<int32_t>(i);
      default:
        return At<int64_t>(i);
    }
  }
  // Truncated towards zero; NaN becomes the least integer, which is no index.
  MXTRAIN_HD int64_t Index(int64_t i) const {
    if (type == DType::kInt32) return static_cast<const int32_t*>(data)[i];
    if (type == DType::kInt64) return static_cast<const int64_t*>(data)[i];
    const double number = Number(i);
    return number != number ? std::numeric_limits<int64_t>::min()
                            : static_cast<int64_t>(WrappingInt(number));
  }

 private:
  template <typename T>
  MXTRAIN_HD double At(int64_t i) const {
    return static_cast<double>(static_cast<const T*>(data)[i]);
  }
};

}  // namespace mxtrain
