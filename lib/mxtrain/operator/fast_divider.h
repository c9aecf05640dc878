// SPDX-License-Identifier: Apache-2.0
#pragma once
// Division by a number that is known before a loop: a multiplication and a shift (Granlund and
// Montgomery, "Division by invariant integers using multiplication", 1994). Trivially copyable, for
// kernels.
#include <bit>
#include <cstdint>

#include "mxtrain/base/macros.h"

namespace mxtrain {

class FastDivider {
 public:
  FastDivider() = default;
  explicit FastDivider(int64_t divisor) : divisor_(divisor) {
    if (divisor < 1 || divisor > kMost) return;
    shift_ = 32 - std::countl_zero(static_cast<uint32_t>(divisor - 1));
    if (divisor == 1) shift_ = 0;
    multiplier_ = static_cast<uint32_t>(
        ((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - static_cast<uint64_t>(divisor))) /
            static_cast<uint64_t>(divisor) +
        1);
  }

  // quotient = n / divisor, remainder = n % divisor, for n >= 0.
  MXTRAIN_HD void Divide(int64_t n, int64_t* quotient, int64_t* remainder) const {
    if (n <= kMost && divisor_ <= kMost) {
      const auto small = static_cast<uint32_t>(n);
      const auto high = static_cast<uint32_t>(uint64_t{small} * multiplier_ >> 32);
      *quotient = static_cast<int64_t>((high + small) >> shift_);
    } else {
      *quotient = n / divisor_;
    }
    *remainder = n - *quotient * divisor_;
  }

 private:
  static constexpr int64_t kMost = (int64_t{1} << 31) - 1;

  int64_t divisor_ = 1;
  uint32_t multiplier_ = 1;
  int shift_ = 0;
};

}  // namespace mxtrain
