// SPDX-License-Identifier: Apache-2.0
#pragma once
// The integers that element-wise kernels compute with: 64 bits, with a result for every operation,
// so that no input aborts the process. Sums, differences and products wrap around (two's
// complement). Division truncates; division and remainder by zero are 0; the least number divided
// by -1 is itself. Floating-point numbers are truncated towards zero and saturate; NaN becomes 0.
// Arrays of narrower types keep the low bits of the result.
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "mxtrain/base/macros.h"

namespace mxtrain {

class WrappingInt {
 public:
  constexpr WrappingInt() = default;
  template <std::integral T>
  MXTRAIN_HD constexpr WrappingInt(T value) : value_(static_cast<int64_t>(value)) {}
  template <std::floating_point T>
  MXTRAIN_HD constexpr explicit WrappingInt(T value)
      : value_(value != value       ? 0
               : value >= T(0x1p63) ? std::numeric_limits<int64_t>::max()
               : value < T(-0x1p63) ? std::numeric_limits<int64_t>::min()
                                    : static_cast<int64_t>(value)) {}

  template <std::integral T>
  MXTRAIN_HD constexpr explicit operator T() const {
    return static_cast<T>(value_);
  }
  MXTRAIN_HD constexpr explicit operator double() const { return static_cast<double>(value_); }

  MXTRAIN_HD friend constexpr WrappingInt operator+(WrappingInt a, WrappingInt b) {
    return Wrap(a.bits() + b.bits());
  }
  MXTRAIN_HD friend constexpr WrappingInt operator-(WrappingInt a, WrappingInt b) {
    return Wrap(a.bits() - b.bits());
  }
  MXTRAIN_HD friend constexpr WrappingInt operator*(WrappingInt a, WrappingInt b) {
    return Wrap(a.bits() * b.bits());
  }
  MXTRAIN_HD friend constexpr WrappingInt operator/(WrappingInt a, WrappingInt b) {
    if (b.value_ == 0) return 0;
    return b.value_ == -1 ? -a : WrappingInt(a.value_ / b.value_);
  }
  MXTRAIN_HD friend constexpr WrappingInt operator%(WrappingInt a, WrappingInt b) {
    return b.value_ == 0 || b.value_ == -1 ? WrappingInt(0) : WrappingInt(a.value_ % b.value_);
  }
  MXTRAIN_HD friend constexpr WrappingInt operator-(WrappingInt a) { return Wrap(-a.bits()); }
  MXTRAIN_HD friend constexpr auto operator<=>(WrappingInt a, WrappingInt b) = default;

 private:
  MXTRAIN_HD static constexpr WrappingInt Wrap(uint64_t bits) { return static_cast<int64_t>(bits); }
  MXTRAIN_HD constexpr uint64_t bits() const { return static_cast<uint64_t>(value_); }

  int64_t value_ = 0;
};

}  // namespace mxtrain
