// SPDX-License-Identifier: Apache-2.0
#pragma once
// The version of cuDNN loaded by the process.
#include <cudnn.h>

#include <string>

#include "mxtrain/base/format.h"

namespace mxtrain::cuda {

// "9.14.0", from cuDNN's number 91400.
inline std::string CudnnVersion() {
  const size_t number = cudnnGetVersion();
  return format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

}  // namespace mxtrain::cuda
