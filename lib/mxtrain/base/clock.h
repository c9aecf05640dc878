// SPDX-License-Identifier: Apache-2.0
#pragma once
// The monotonic clock, whose zero is arbitrary.
#include <chrono>
#include <cstdint>

namespace mxtrain {

inline int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace mxtrain
