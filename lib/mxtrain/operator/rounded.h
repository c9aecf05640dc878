// SPDX-License-Identifier: Apache-2.0
#pragma once
// Narrowing by one instruction where a GPU has it.
#include <type_traits>

#include "mxtrain/base/dtype.h"

namespace mxtrain {

// As static_cast<T>, but that a NaN may get other bits.
template <typename T, typename A>
MXTRAIN_HD inline T Rounded(A value) {
  MXTRAIN_ON_DEVICE(if constexpr (std::is_same_v<T, bfloat16> && __CUDA_ARCH__ >= 800) {
    bfloat16 rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(static_cast<float>(value)));
    return rounded;
  })
  return static_cast<T>(value);
}

}  // namespace mxtrain
