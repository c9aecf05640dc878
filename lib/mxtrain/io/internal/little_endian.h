// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers in files whose least significant byte comes first.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mxtrain::io {

// The number of `size` bytes from `at` on, which must exist.
inline uint32_t LittleEndian(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

inline void PutLittleEndian(uint32_t value, int size, std::string* out) {
  for (int i = 0; i < size; ++i, value >>= 8) out->push_back(static_cast<char>(value & 0xff));
}

}  // namespace mxtrain::io
