#include "mxtrain/base/dtype.h"

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {
struct Entry {
  DType type;
  int64_t size;
  const char* name;
};
constexpr Entry kTypes[] = {{DType::kFloat32, 4, "float32"}, {DType::kFloat64, 8, "float64"}, {DType::kFloat16, 2, "float16"},
                            {DType::kBfloat16, 2, "bfloat16"}, {DType::kUint8, 1, "uint8"},    {DType::kInt32, 4, "int32"},
                            {DType::kInt64, 8, "int64"}};
}  // namespace

int64_t SizeOf(DType type) {
  for (const Entry& e : kTypes) {
    if (e.type == type) return e.size;
  }
  Throw(ErrorKind::kBug, "size of the unknown element type {}", static_cast<int>(type));
}

const char* NameOf(DType type) {
  for (const Entry& e : kTypes) {
    if (e.type == type) return e.name;
  }
  return "unknown";
}

DType ParseDType(std::string_view text) {
  for (const Entry& e : kTypes) {
    if (text == e.name) return e.type;
  }
  Throw(ErrorKind::kConfig, "'{}' is not an element type; use float32, float64, float16, bfloat16, uint8, int32 or int64", text);
}

uint16_t FloatToHalfBits(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                                 // subnormal half: let the float unit round
    const float scaled = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float HalfBitsToFloat(uint16_t bits) {
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

}  // namespace mxtrain
