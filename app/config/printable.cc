// SPDX-License-Identifier: Apache-2.0
#include "app/config/printable.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "mxtrain/base/format.h"

namespace mxtrain::config {
namespace {

constexpr uint32_t kNoCharacter = 0xffffffff;

// The first character of UTF-8 text and its length in bytes; kNoCharacter and one byte if invalid.
std::pair<uint32_t, size_t> FirstCharacter(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || size > text.size()) return {kNoCharacter, 1};
  uint32_t code = first & (0xff >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {kNoCharacter, 1};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[size] || code > 0x10ffff || surrogate ? std::pair(kNoCharacter, size_t{1})
                                                             : std::pair(code, size);
}

void AppendPrintable(std::string_view bytes, uint32_t code, std::string* text) {
  const bool turns = code == 0x61c || (code >= 0x200e && code <= 0x200f) ||
                     (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  const bool breaks = code == 0x2028 || code == 0x2029;
  if (code == kNoCharacter) {
    *text += format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
  } else if (code == '\n' || code == '\r' || code == '\t') {
    *text += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
  } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
    *text += format("\\x{:02x}", code);
  } else if (turns || breaks) {
    *text += format("\\u{:04x}", code);
  } else {
    *text += bytes;
  }
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  for (std::string_view rest = text; !rest.empty();) {
    const auto [code, size] = FirstCharacter(rest);
    AppendPrintable(rest.substr(0, size), code, &printable);
    rest.remove_prefix(size);
  }
  return printable;
}

std::string PrintableLines(std::string_view text) {
  std::string printable;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\t", begin), text.size());
    printable += Printable(text.substr(begin, end - begin));
    if (end < text.size()) printable += text[end];
    begin = end + 1;
  }
  return printable;
}

std::string QuoteShell(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || std::strchr("-_./:=,@%+", c) || c >= 0x80;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace mxtrain::config
