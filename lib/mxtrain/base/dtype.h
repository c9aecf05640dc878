#pragma once
// Element types. The numbers are those of the reference system's parameter files.
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

MXTRAIN_API int64_t SizeOf(DType type);              // bytes of an element; throws for kUnknown
MXTRAIN_API const char* NameOf(DType type);          // "float32", ...; "unknown"
MXTRAIN_API DType ParseDType(std::string_view text);  // throws kConfig with the list of names
inline bool IsFloating(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 || t == DType::kBfloat16;
}

// IEEE binary16 and bfloat16 as storage types: arithmetic happens in float. Conversion rounds to nearest even.
MXTRAIN_API uint16_t FloatToHalfBits(float value);
MXTRAIN_API float HalfBitsToFloat(uint16_t bits);

struct float16 {
  uint16_t bits = 0;
  float16() = default;
  float16(float value) : bits(FloatToHalfBits(value)) {}
  operator float() const { return HalfBitsToFloat(bits); }
};

struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  bfloat16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);  // keep NaN a NaN
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <typename T>
struct DTypeOf;
template <> struct DTypeOf<float> { static constexpr DType value = DType::kFloat32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::kFloat64; };
template <> struct DTypeOf<float16> { static constexpr DType value = DType::kFloat16; };
template <> struct DTypeOf<bfloat16> { static constexpr DType value = DType::kBfloat16; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::kUint8; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::kInt32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::kInt64; };

}  // namespace mxtrain
