// SPDX-License-Identifier: Apache-2.0
// The conversions of row_vectors.h, for the instruction set that every machine of this build has:
// by its instructions, and element by element as on machines without any for binary16.
#include <doctest/doctest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "mxtrain/base/dtype.h"

#include "mxtrain/operators/softmax/row_vectors.h"  // after the others

HWY_BEFORE_NAMESPACE();
namespace mxtrain {
namespace HWY_NAMESPACE {
namespace rows = row_vectors::HWY_NAMESPACE;

constexpr uint32_t kHalves = 1 << 16, kHalfInfinity = 0x7c00, kSign = 0x8000;

// The value of a binary16, by the definition of the format.
float ValueOf(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
  float value = std::numeric_limits<float>::infinity();
  if (exponent == 31 && mantissa > 0) value = std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) value = std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent > 0 && exponent < 31)
    value = std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return std::copysign(value, bits & kSign ? -1.0F : 1.0F);
}

template <bool kByInstruction>
std::vector<float> Loaded(const std::vector<float16>& from) {
  std::vector<float> to(from.size());
  for (size_t k = 0; k < from.size(); k += rows::kLanes)
    rows::Store(rows::Load<kByInstruction>(from.data() + k), to.data() + k);
  return to;
}

// `from` is filled up to whole vectors.
template <bool kByInstruction>
std::vector<uint16_t> Stored(std::vector<float> from) {
  from.resize((from.size() + rows::kLanes - 1) / rows::kLanes * rows::kLanes);
  std::vector<float16> to(from.size());
  for (size_t k = 0; k < from.size(); k += rows::kLanes)
    rows::Store<kByInstruction>(rows::Load(from.data() + k), to.data() + k);
  std::vector<uint16_t> bits;
  for (const float16 half : to) bits.push_back(half.bits);
  return bits;
}

template <bool kByInstruction>
void CheckEveryHalf() {
  std::vector<float16> halves(kHalves);
  for (uint32_t bits = 0; bits < kHalves; ++bits) halves[bits].bits = static_cast<uint16_t>(bits);
  const std::vector<float> values = Loaded<kByInstruction>(halves);
  const std::vector<uint16_t> back = Stored<kByInstruction>(values);
  int wrong = 0;
  for (uint32_t bits = 0; bits < kHalves; ++bits) {
    const float expected = ValueOf(bits);
    if (std::isnan(expected)) {
      wrong += !std::isnan(values[bits]) || (back[bits] & ~kSign) <= kHalfInfinity;
    } else {
      wrong += values[bits] != expected || std::signbit(values[bits]) != std::signbit(expected);
      wrong += back[bits] != bits;
    }
  }
  CHECK(wrong == 0);
}

// Between two neighbours, and beyond the largest.
template <bool kByInstruction>
void CheckRounding() {
  std::vector<float> values;
  std::vector<uint32_t> expected;
  const auto add = [&](float value, uint32_t bits) {
    values.insert(values.end(), {value, -value});
    expected.insert(expected.end(), {bits, bits | kSign});
  };
  for (uint32_t bits = 0; bits < kHalfInfinity; ++bits) {
    // What follows the largest would be 2^16.
    const float low = ValueOf(bits), high = bits + 1 < kHalfInfinity ? ValueOf(bits + 1) : 0x1p16F;
    const float middle = low + (high - low) / 2;
    add(std::nextafter(middle, low), bits);
    add(middle, bits + (bits & 1));
    add(std::nextafter(middle, high), bits + 1);
  }
  add(std::numeric_limits<float>::max(), kHalfInfinity);
  add(std::numeric_limits<float>::denorm_min(), 0);
  const std::vector<uint16_t> bits = Stored<kByInstruction>(values);
  CHECK(std::equal(expected.begin(), expected.end(), bits.begin()));
}

void CheckHalves() {
  CheckEveryHalf<false>();
  CheckRounding<false>();
  if constexpr (rows::kConvertsHalf) {
    CheckEveryHalf<true>();
    CheckRounding<true>();
  }
}

}  // namespace HWY_NAMESPACE

namespace {

TEST_CASE("vectors of binary16 hold its values, and round to nearest even") {
  HWY_STATIC_DISPATCH(CheckHalves)();
}

}  // namespace
}  // namespace mxtrain
HWY_AFTER_NAMESPACE();
