// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/utf8.h"

#include <cstring>

namespace mxtrain::text {
namespace {

struct Continuation {
  unsigned char low = 0x80, high = 0xbf;
};

// What the second byte may be: it excludes overlong forms, surrogates, and beyond U+10FFFF.
Continuation SecondOf(unsigned char lead) {
  switch (lead) {
    case 0xe0:
      return {0xa0, 0xbf};
    case 0xed:
      return {0x80, 0x9f};
    case 0xf0:
      return {0x90, 0xbf};
    case 0xf4:
      return {0x80, 0x8f};
    default:
      return {};
  }
}

// Leading bytes of ASCII, eight at a time.
size_t AsciiPrefix(std::string_view text) {
  size_t at = 0;
  for (uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (word & 0x8080808080808080u) break;
  }
  return at;
}

}  // namespace

CodePoint DecodeMultibyte(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const uint32_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0) return {kReplacement, 1, false};
  uint32_t value = lead & (0x7fu >> length);
  Continuation allowed = SecondOf(lead);
  for (uint32_t k = 1; k < length; ++k, allowed = {}) {
    const auto byte = k < text.size() ? static_cast<unsigned char>(text[k]) : 0;
    if (byte < allowed.low || byte > allowed.high) return {kReplacement, k, false};
    value = value << 6 | (byte & 0x3fu);
  }
  return {value, length, true};
}

void AppendCodePoint(uint32_t c, std::string* text) {
  const auto put = [text](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

std::string TextOfCodePoint(uint32_t code_point) {
  std::string text;
  AppendCodePoint(code_point, &text);
  return text;
}

size_t ValidPrefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    at += AsciiPrefix(text.substr(at));
    if (at == text.size()) break;
    const CodePoint c = DecodeCodePoint(text.substr(at));
    if (!c.valid) break;
    at += c.bytes;
  }
  return at;
}

size_t InvalidPrefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = DecodeCodePoint(text.substr(at));
    if (c.valid) break;
    at += c.bytes;
  }
  return at;
}

std::string WithReplacements(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  ForEachCodePoint(text, [&](uint32_t value, std::string_view) { AppendCodePoint(value, &valid); });
  return valid;
}

std::string_view ValidText(std::string_view text, std::string* buffer) {
  if (ValidPrefix(text) == text.size()) return text;
  *buffer = WithReplacements(text);
  return *buffer;
}

}  // namespace mxtrain::text
