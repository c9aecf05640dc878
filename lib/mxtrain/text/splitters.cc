// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/splitters.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "mxtrain/base/error.h"
#include "mxtrain/text/internal/regex.h"
#include "mxtrain/text/internal/unicode_class.h"
#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSingleDigitsPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// What the patterns tell apart; a character is of one class.
enum class SplitClass : uint8_t { kOther, kLetter, kNumber, kSpace };
using ClassTable = std::array<SplitClass, kCodePoints>;

// By PCRE2's properties, whichever version of Unicode it has.
std::unique_ptr<const ClassTable> MakeClassTable() {
  auto table = std::make_unique<ClassTable>();
  table->fill(SplitClass::kOther);
  std::string all;
  for (uint32_t c = 0; c < kCodePoints; ++c) {
    if (c < 0xd800 || c > 0xdfff) AppendCodePoint(c, &all);
  }
  const auto mark = [&](const char* pattern, SplitClass kind) {
    const Regex regex(pattern);
    Regex::Search search(regex, all);
    for (Regex::Match match = search.Next(); match.end > 0; match = search.Next()) {
      ForEachCodePoint(std::string_view(all).substr(match.begin, match.end - match.begin),
                       [&](uint32_t c, std::string_view) { (*table)[c] = kind; });
    }
  };
  mark("\\p{L}+", SplitClass::kLetter);
  mark("\\p{N}+", SplitClass::kNumber);
  for (uint32_t c = 0; c <= 0x3000; ++c) {
    if (IsWhiteSpace(c)) (*table)[c] = SplitClass::kSpace;
  }
  return table;
}

const ClassTable& Classes() {
  static const std::unique_ptr<const ClassTable> table = MakeClassTable();
  return *table;
}

// A text and the class of the character at a place in it. Places are those of whole characters.
class SplitCursor {
 public:
  explicit SplitCursor(std::string_view text) : text_(text) {}

  bool Done(size_t at) const { return at >= text_.size(); }
  char ByteAt(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  SplitClass ClassAt(size_t at, size_t* next) const {
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) {
      *next = at + 1;
      return classes_[byte];
    }
    const CodePoint c = DecodeMultibyte(text_.substr(at));
    *next = at + c.bytes;
    return classes_[c.value];
  }
  bool Is(size_t at, SplitClass kind) const {
    size_t next = 0;
    return !Done(at) && ClassAt(at, &next) == kind;
  }
  // Behind the run of a class.
  size_t EndOf(SplitClass kind, size_t at) const {
    for (size_t next = at; at < text_.size() && ClassAt(at, &next) == kind;) at = next;
    return at;
  }
  size_t EndOfNewlines(size_t at) const {
    while (IsNewline(at)) ++at;
    return at;
  }
  bool IsNewline(size_t at) const {
    return at < text_.size() && (text_[at] == '\n' || text_[at] == '\r');
  }
  // The begin of the character before `at`.
  size_t Before(size_t at) const {
    do {
      --at;
    } while ((static_cast<unsigned char>(text_[at]) & 0xc0) == 0x80);
    return at;
  }
  // Of a run of white space [0, end), up to what `\s+(?!\S)|\s+` matches: all but the last
  // character, which may belong to the next word.
  size_t SpacesBeforeWord(size_t end) const {
    if (Done(end)) return end;
    const size_t last = Before(end);
    return last > 0 ? last : end;
  }

 private:
  const std::string_view text_;
  const ClassTable& classes_ = Classes();
};

// The bytes of 's, 't, 're, 've, 'm, 'll, 'd at the beginning; 0 without.
size_t Contraction(std::string_view text, bool any_case) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const auto letter = [&](size_t at) {
    const char c = at < text.size() ? text[at] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? 3 : 0;
    case 'l':
      return letter(2) == 'l' ? 3 : 0;
    default:
      // The long s, "ſ", is an s too where case is ignored.
      return any_case && text.substr(1).starts_with("\xc5\xbf") ? 3 : 0;
  }
}

size_t FirstCl100kPiece(std::string_view text, int most_digits) {
  if (const size_t contraction = Contraction(text, true)) return contraction;
  const SplitCursor cursor(text);
  size_t next = 0;
  const SplitClass first = cursor.ClassAt(0, &next);
  if (first == SplitClass::kLetter) return cursor.EndOf(first, next);
  if (first == SplitClass::kNumber) {
    for (int i = 1; i < most_digits && cursor.Is(next, first); ++i) cursor.ClassAt(next, &next);
    return next;
  }
  if (!cursor.IsNewline(0) && cursor.Is(next, SplitClass::kLetter))
    return cursor.EndOf(SplitClass::kLetter, next);
  const size_t symbol = text[0] == ' ' ? 1 : 0;
  if (cursor.Is(symbol, SplitClass::kOther))
    return cursor.EndOfNewlines(cursor.EndOf(SplitClass::kOther, symbol));
  const size_t end = cursor.EndOf(SplitClass::kSpace, 0);
  const size_t newline = text.substr(0, end).find_last_of("\r\n");
  return newline != std::string_view::npos ? newline + 1 : cursor.SpacesBeforeWord(end);
}

}  // namespace

std::string_view PatternOf(KnownPattern pattern) {
  switch (pattern) {
    case KnownPattern::kGpt2:
      return kGpt2Pattern;
    case KnownPattern::kCl100k:
      return kCl100kPattern;
    case KnownPattern::kCl100kSingleDigits:
      return kSingleDigitsPattern;
  }
  MXTRAIN_ASSERT(false);
}

std::optional<KnownPattern> KnownPatternOf(std::string_view pattern) {
  for (const KnownPattern known :
       {KnownPattern::kGpt2, KnownPattern::kCl100k, KnownPattern::kCl100kSingleDigits}) {
    if (pattern == PatternOf(known)) return known;
  }
  return std::nullopt;
}

size_t FirstGpt2Piece(std::string_view text) {
  if (const size_t contraction = Contraction(text, false)) return contraction;
  const SplitCursor cursor(text);
  const size_t word = text[0] == ' ' ? 1 : 0;
  size_t next = 0;
  if (!cursor.Done(word)) {
    const SplitClass kind = cursor.ClassAt(word, &next);
    if (kind != SplitClass::kSpace) return cursor.EndOf(kind, next);
  }
  return cursor.SpacesBeforeWord(cursor.EndOf(SplitClass::kSpace, 0));
}

size_t FirstPiece(KnownPattern pattern, std::string_view text) {
  if (pattern == KnownPattern::kGpt2) return FirstGpt2Piece(text);
  return FirstCl100kPiece(text, pattern == KnownPattern::kCl100k ? 3 : 1);
}

}  // namespace mxtrain::text
