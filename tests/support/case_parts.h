// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the cases of several operators share.
#include <cstdint>
#include <functional>
#include <vector>

#include "mxtrain/base/dtype.h"

namespace mxtrain::test {

inline const std::vector<DType> kAllTypes = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
                                             DType::kBfloat16, DType::kUint8,   DType::kInt32,
                                             DType::kInt64};

// Elements from which a case runs with one type, without central differences.
inline constexpr int64_t kLarge = 4096;

// Of references.
using ScalarFunction = std::function<double(double)>;
using BinaryFunction = double (*)(double, double);

}  // namespace mxtrain::test
