// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers in files whose most significant byte comes first.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mxtrain::io {

// The four bytes from `at` on, which must exist.
inline uint32_t BigEndian32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace mxtrain::io
