// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types. The values are those of MXNet's parameter files.
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

enum class DType : int8_t {
  kUnknown = -1,
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUint8 = 3,
  kInt32 = 4,
  kInt64 = 6,
  kBfloat16 = 12,
};

MXTRAIN_API int64_t SizeOf(DType type);               // bytes of an element; throws for kUnknown
MXTRAIN_API const char* NameOf(DType type);           // "float32", ...; "unknown"
MXTRAIN_API DType ParseDType(std::string_view text);  // throws kConfig with the list of names
inline bool IsFloating(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 ||
         t == DType::kBfloat16;
}

// IEEE binary16 and bfloat16 as storage types: arithmetic uses float. Conversion rounds to nearest
// even, by one instruction where a GPU has it (whose NaN may have other bits).
MXTRAIN_HD inline uint16_t FloatToHalfBits(float value) {
  MXTRAIN_ON_DEVICE(uint16_t bits; asm("cvt.rn.f16.f32 %0, %1;"
                                       : "=h"(bits)
                                       : "f"(value));
                    return bits;)
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal half: rounded by the float unit
    const float scaled = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}
MXTRAIN_HD inline float HalfBitsToFloat(uint16_t bits) {
  MXTRAIN_ON_DEVICE(float value; asm("cvt.f32.f16 %0, %1;"
                                     : "=f"(value)
                                     : "h"(bits));
                    return value;)
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

MXTRAIN_HD inline uint16_t FloatToBfloat16Bits(float value) {
  MXTRAIN_ON_DEVICE(if constexpr (__CUDA_ARCH__ >= 800) {
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
  })
  const uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);  // a NaN
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

struct float16 {
  uint16_t bits = 0;
  float16() = default;
  MXTRAIN_HD float16(float value) : bits(FloatToHalfBits(value)) {}
  MXTRAIN_HD operator float() const { return HalfBitsToFloat(bits); }
};

struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  MXTRAIN_HD bfloat16(float value) : bits(FloatToBfloat16Bits(value)) {}
  MXTRAIN_HD operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<float16> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::kBfloat16;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUint8;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};

}  // namespace mxtrain
