// SPDX-License-Identifier: Apache-2.0
#pragma once
// UTF-8, code point by code point.
#include <cstdint>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain::text {

inline constexpr uint32_t kReplacement = 0xfffd;
inline constexpr uint32_t kCodePoints = 0x110000;

struct CodePoint {
  uint32_t value = 0;  // kReplacement if it is invalid
  uint32_t bytes = 0;
  bool valid = false;
};

// The code point at the beginning of a text that is not empty. An invalid one has the bytes of the
// maximal part that could begin a code point (Unicode 3.9, "U+FFFD substitution"), at least one.
MXTRAIN_API CodePoint DecodeMultibyte(std::string_view text);
inline CodePoint DecodeCodePoint(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  return DecodeMultibyte(text);
}

MXTRAIN_API void AppendCodePoint(uint32_t code_point, std::string* text);
MXTRAIN_API std::string TextOfCodePoint(uint32_t code_point);

// With U+FFFD for each maximal invalid part.
MXTRAIN_API std::string WithReplacements(std::string_view text);
// The same without a copy of valid text: a view of `text`, or of *buffer.
std::string_view ValidText(std::string_view text, std::string* buffer);

// Bytes from the beginning that are valid, and from there that are invalid, up to valid ones.
size_t ValidPrefix(std::string_view text);
size_t InvalidPrefix(std::string_view text);

// Calls visit(code_point, bytes of it) for each code point of valid text.
template <typename Visit>
void ForEachCodePoint(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const CodePoint at = DecodeCodePoint(text);
    visit(at.value, text.substr(0, at.bytes));
    text.remove_prefix(at.bytes);
  }
}

}  // namespace mxtrain::text
