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

  // Whether DivideSmall takes such a number and such a divisor.
  static constexpr bool Small(int64_t n) { return n <= kMost; }
  // quotient = n / divisor, remainder = n % divisor, for a small n and a small divisor.
  MXTRAIN_HD void DivideSmall(uint32_t n, uint32_t* quotient, uint32_t* remainder) const {
    const auto high = static_cast<uint32_t>(uint64_t{n} * multiplier_ >> 32);
    const uint32_t q = (high + n) >> shift_;
    *remainder = n - q * static_cast<uint32_t>(divisor_);
    *quotient = q;
  }
  // The same for n >= 0.
  MXTRAIN_HD void Divide(int64_t n, int64_t* quotient, int64_t* remainder) const {
    if (n <= kMost && divisor_ <= kMost) {
      uint32_t q = 0, r = 0;
      DivideSmall(static_cast<uint32_t>(n), &q, &r);
      *quotient = q;
      *remainder = r;
    } else {
      *quotient = n / divisor_;
      *remainder = n - *quotient * divisor_;
    }
  }

 private:
  static constexpr int64_t kMost = (int64_t{1} << 31) - 1;

  int64_t divisor_ = 1;
  uint32_t multiplier_ = 1;
  int shift_ = 0;
};

}  // namespace mxtrain
