// SPDX-License-Identifier: Apache-2.0
#pragma once
// Letters of a text as the source text_lines numbers them.
#include <string>
#include <string_view>
#include <vector>

namespace mxtrain::io {

// The code points of valid UTF-8, one by one: an accent that is a code point of its own is a
// letter.
inline std::vector<std::string> LettersOf(std::string_view text) {
  std::vector<std::string> letters;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    letters.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return letters;
}

}  // namespace mxtrain::io
