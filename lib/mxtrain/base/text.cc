// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/text.h"

#include <algorithm>

namespace mxtrain {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Shortened(std::string_view text, size_t most) {
  constexpr std::string_view kGap = "...";
  if (text.size() <= most) return std::string(text);
  const auto inside = [text](size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  const size_t kept = most - std::min(most, kGap.size());
  size_t head = kept - kept / 3, tail = text.size() - kept / 3;
  for (int i = 0; i < 3 && head > 0 && inside(head); ++i) --head;
  for (int i = 0; i < 3 && inside(tail); ++i) ++tail;
  return std::string(text.substr(0, head)).append(kGap).append(text.substr(tail));
}

bool IsUtf8(std::string_view text) {
  const auto byte = [text](size_t at) { return static_cast<unsigned char>(text[at]); };
  for (size_t i = 0; i < text.size();) {
    const int lead = byte(i);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xc2 ? 0  // a continuation, or the lead of an overlong form
                          : lead < 0xe0 ? 2
                          : lead < 0xf0 ? 3
                          : lead < 0xf5 ? 4
                                        : 0;
    if (length == 0 || length > text.size() - i) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    // Overlong forms, surrogates, and beyond U+10FFFF.
    const int second = length > 1 ? byte(i + 1) : 0;
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
      return false;
    i += length;
  }
  return true;
}

std::string_view Trim(std::string_view text, std::string_view blanks) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace mxtrain
