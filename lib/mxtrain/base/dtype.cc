// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/dtype.h"

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {
struct Entry {
  DType type;
  int64_t size;
  const char* name;
};
constexpr Entry kTypes[] = {{DType::kFloat32, 4, "float32"}, {DType::kFloat64, 8, "float64"},
                            {DType::kFloat16, 2, "float16"}, {DType::kBfloat16, 2, "bfloat16"},
                            {DType::kUint8, 1, "uint8"},     {DType::kInt32, 4, "int32"},
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
  Throw(
      ErrorKind::kConfig,
      "'{}' is not an element type; use float32, float64, float16, bfloat16, uint8, int32 or int64",
      text);
}

}  // namespace mxtrain
