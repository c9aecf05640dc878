// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/unicode_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "mxtrain/base/error.h"
#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

utf8proc_category_t CategoryOf(uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

struct CodePointRange {
  uint32_t first, last;
};
constexpr CodePointRange kBertChinese[] = {
    {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},  {0x20000, 0x2a6df},
    {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};

int OptionsOf(NormalForm form) {
  switch (form) {
    case NormalForm::kNfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalForm::kNfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalForm::kNfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::kNfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  MXTRAIN_ASSERT(false);
}

bool IsAsciiByte(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

void AppendMapped(int options, std::string_view text, std::string* to) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &made, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(made, std::free);
  if (length < 0)
    Throw(length == UTF8PROC_ERROR_NOMEM ? ErrorKind::kMemory : ErrorKind::kData,
          "a text of {} bytes cannot be normalized: {}", text.size(), utf8proc_errmsg(length));
  to->append(reinterpret_cast<const char*>(made), static_cast<size_t>(length));
}

}  // namespace

bool IsWhiteSpace(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x9 && c <= 0xd);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool IsPunctuation(uint32_t c) {
  if (c < 0x80)
    return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') ||
           (c > 'z' && c < 0x7f);
  const utf8proc_category_t category = CategoryOf(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool IsNumeric(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t category = CategoryOf(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool IsMark(uint32_t c) {
  if (c < 0x80) return false;
  const utf8proc_category_t category = CategoryOf(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsNonspacingMark(uint32_t c) {
  return c >= 0x80 && CategoryOf(c) == UTF8PROC_CATEGORY_MN;
}

bool IsControlOrFormat(uint32_t c) {
  const utf8proc_category_t category = CategoryOf(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

bool IsBertChinese(uint32_t c) {
  if (c < kBertChinese[0].first) return false;
  for (const CodePointRange& range : kBertChinese) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

void AppendLower(uint32_t c, std::string* text) {
  if (c < 0x80) {
    text->push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c));
  } else if (c == 0x130) {  // the one lower case of two characters
    text->append("i\xcc\x87");
  } else {
    AppendCodePoint(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))),
                    text);
  }
}

// ASCII stays as it is, but for a character before others, with which it may be composed.
std::string Normalized(NormalForm form, std::string_view text) {
  std::string normal;
  normal.reserve(text.size());
  while (!text.empty()) {
    const auto other = std::find_if_not(text.begin(), text.end(), IsAsciiByte);
    const auto next = std::find_if(other, text.end(), IsAsciiByte);
    const auto size = static_cast<size_t>(next - text.begin()),
               ascii = static_cast<size_t>(other - text.begin());
    const size_t kept = ascii == size ? size : ascii - std::min<size_t>(ascii, 1);
    normal += text.substr(0, kept);
    if (kept < size) AppendMapped(OptionsOf(form), text.substr(kept, size - kept), &normal);
    text.remove_prefix(size);
  }
  return normal;
}

}  // namespace mxtrain::text
