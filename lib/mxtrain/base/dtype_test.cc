// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/dtype.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

// The value of binary16 bits as IEEE 754 defines it.
double HalfValue(uint32_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
  if (exponent == 31) return mantissa ? std::nan("") : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

TEST_CASE("every half has its value and round-trips") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = HalfBitsToFloat(static_cast<uint16_t>(bits));
    const double expected = HalfValue(bits);
    if (std::isnan(expected)) {
      REQUIRE(std::isnan(value));
      REQUIRE(std::isnan(HalfBitsToFloat(FloatToHalfBits(value))));
    } else {
      REQUIRE(value == expected);
      REQUIRE(std::signbit(value) == std::signbit(expected));
      REQUIRE(FloatToHalfBits(value) == bits);
    }
  }
}

TEST_CASE("rounding to half: nearest, ties to even, on both sides of every midpoint") {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float middle = static_cast<float>((HalfValue(bits) + HalfValue(bits + 1)) / 2);
    REQUIRE(FloatToHalfBits(middle) == (bits % 2 ? bits + 1 : bits));
    REQUIRE(FloatToHalfBits(std::nextafter(middle, 0.0f)) == bits);
    REQUIRE(FloatToHalfBits(std::nextafter(middle, INFINITY)) == bits + 1);
    REQUIRE(FloatToHalfBits(-middle) == (0x8000 | (bits % 2 ? bits + 1 : bits)));
  }
  CHECK(FloatToHalfBits(65519.0f) == 0x7bff);
  CHECK(FloatToHalfBits(65520.0f) == 0x7c00);
  CHECK(FloatToHalfBits(std::numeric_limits<float>::max()) == 0x7c00);
}

TEST_CASE("every bfloat16 round-trips, and midpoints go to even") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    bfloat16 b;
    b.bits = static_cast<uint16_t>(bits);
    const float value = b;
    if (std::isnan(value)) {
      REQUIRE(std::isnan(static_cast<float>(bfloat16(value))));
      continue;
    }
    REQUIRE(bfloat16(value).bits == bits);
    if (std::isinf(value)) continue;
    const float middle = std::bit_cast<float>(bits << 16 | 0x8000u);
    REQUIRE(bfloat16(middle).bits == (bits % 2 ? bits + 1 : bits));
    REQUIRE(bfloat16(std::bit_cast<float>(bits << 16 | 0x8001u)).bits == bits + 1);
    REQUIRE(bfloat16(std::bit_cast<float>(bits << 16 | 0x7fffu)).bits == bits);
  }
}

TEST_CASE("element types have names and sizes") {
  for (const char* name :
       {"float32", "float64", "float16", "bfloat16", "uint8", "int32", "int64"}) {
    CHECK(std::string(NameOf(ParseDType(name))) == name);
  }
  CHECK(SizeOf(DType::kBfloat16) == 2);
  CHECK(SizeOf(DType::kInt64) == 8);
  CHECK_THROWS_WITH_AS(ParseDType("float"),
                       "'float' is not an element type; use float32, float64, float16, bfloat16, "
                       "uint8, int32 or int64",
                       Error);
  CHECK_THROWS_AS(SizeOf(DType::kUnknown), Error);
}

}  // namespace
}  // namespace mxtrain
