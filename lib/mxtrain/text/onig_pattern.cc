// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/onig_pattern.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::text {
namespace {

// White_Space. PCRE2's \s has U+180E too.
constexpr std::string_view kOnigSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kOnigNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
// In classes; outside of them Oniguruma takes superscripts and fractions of Latin-1 too.
constexpr std::string_view kOnigWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})",
                           kOnigWordAlone = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
// Texts of letters that are the folding of one character: "ß" matches "ss" where case is ignored.
constexpr std::array<std::string_view, 5> kFoldings = {"ss", "ff", "fi", "fl", "st"};

constexpr std::string_view kCategories[] = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"};
constexpr std::string_view kScripts[] = {
    "Arabic",   "Armenian", "Bengali",   "Bopomofo",  "Cyrillic", "Devanagari",
    "Ethiopic", "Georgian", "Greek",     "Gujarati",  "Gurmukhi", "Han",
    "Hangul",   "Hebrew",   "Hiragana",  "Kannada",   "Katakana", "Khmer",
    "Lao",      "Latin",    "Malayalam", "Mongolian", "Myanmar",  "Oriya",
    "Sinhala",  "Tamil",    "Telugu",    "Thai",      "Thaana",   "Tibetan"};

template <typename List>
bool IsIn(const List& list, std::string_view item) {
  return std::find(std::begin(list), std::end(list), item) != std::end(list);
}

class OnigTranslator {
 public:
  explicit OnigTranslator(std::string_view pattern) : pattern_(pattern) {}

  std::string All() {
    while (!Done()) Item();
    if (ignored_case_) RefuseFoldings();
    return std::move(to_);
  }

 private:
  [[noreturn]] void Refuse(std::string_view what) const {
    Throw(ErrorKind::kData, "{} in the pattern '{}' (byte {}) is not covered", what,
          Shortened(pattern_), at_);
  }
  bool Done() const { return at_ >= pattern_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool Follows(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  void Copy(size_t bytes) {
    to_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }

  void Item() {
    const char c = Peek();
    if (c == '\\') return Escape();
    if (c == '[') return Class();
    if (c == '(') return Group();
    if (c == '{') return Repeat();
    if (c == '}' || c == ']') Refuse(std::string("a '") + c + "' without its begin");
    if (static_cast<unsigned char>(c) >= 0x80) other_than_ascii_ = true;
    letters_ += c;
    Copy(1);
  }

  void Group() {
    letters_ += kApart;
    if (Peek(1) == '*') Refuse("'(*'");
    if (Peek(1) != '?') return Copy(1);
    for (const std::string_view begin : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (Follows(begin)) return Copy(begin.size());
    }
    // Elsewhere than at the begin, what (?i) covers differs where alternatives follow.
    if (Follows("(?i:") || (Follows("(?i)") && at_ == 0)) {
      ignored_case_ = true;
      return Copy(4);
    }
    Refuse("the group '" + std::string(pattern_.substr(at_, 4)) + "'");
  }

  // {n}, {n,}, {n,m}, {,m}: with `?` after {n}, or `+` after any, they differ.
  void Repeat() {
    const size_t end = pattern_.find('}', at_);
    const std::string_view inside =
        end == std::string_view::npos ? "" : pattern_.substr(at_ + 1, end - at_ - 1);
    const size_t comma = inside.find(',');
    const std::string_view low = inside.substr(0, comma),
                           high = comma == std::string_view::npos ? "" : inside.substr(comma + 1);
    const auto digits = [](std::string_view text) {
      return text.size() <= 5 &&
             std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    if (inside.empty() || inside == "," || !digits(low) || !digits(high))
      Refuse("'{' that begins no count");
    at_ = end + 1;
    to_ += "{" + std::string(low.empty() ? "0" : low);
    if (comma != std::string_view::npos) to_ += "," + std::string(high);
    to_ += "}";
    if (Peek() == '+') Refuse("'}+'");
    if (Peek() == '?' && comma == std::string_view::npos) Refuse("'{n}?'");
  }

  void Escape() {
    const char c = Peek(1);
    const std::string space(kOnigSpace), word = std::string(kOnigWord).append(kOnigWordAlone);
    const std::string is_word = "[" + word + "]", not_word = "[^" + word + "]";
    letters_ += kApart;
    switch (c) {
      case 's':
        return Write("[" + space + "]");
      case 'S':
        return Write("[^" + space + "]");
      case 'w':
        return Write(is_word);
      case 'W':
        return Write(not_word);
      case 'b':
        return Write("(?:(?<=" + is_word + ")(?!" + is_word + ")|(?<!" + is_word +
                     ")(?=" + is_word + "))");
      case 'B':
        return Write("(?:(?<=" + is_word + ")(?=" + is_word + ")|(?<!" + is_word + ")(?!" +
                     is_word + "))");
      case 'A':
      case 'z':
      case 'Z':
        return Copy(2);
      default:
        EscapeAnywhere();
    }
  }

  // Escapes that mean the same inside a class and outside.
  void EscapeAnywhere() {
    const char c = Peek(1);
    switch (c) {
      case 'h':
        return Write(in_class_ ? "0-9A-Fa-f" : "[0-9A-Fa-f]");
      case 'v':
        return Write("\\x{b}");
      case 'd':
      case 'D':
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return Copy(2);
      case 'p':
      case 'P':
        return Property();
      case 'u':
        return Hexadecimal(at_ + 2, 4, at_ + 6);
      case 'x':
        if (Peek(2) != '{') return Hexadecimal(at_ + 2, 2, at_ + 4);
        return Hexadecimal(at_ + 3, pattern_.find('}', at_) - at_ - 3, pattern_.find('}', at_) + 1);
      default:
        break;
    }
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '\0' ||
        static_cast<unsigned char>(c) >= 0x80)
      Refuse("'\\" + std::string(1, c) + "'");
    Copy(2);
  }

  void Write(const std::string& text) {
    to_ += text;
    at_ += 2;
  }

  void Hexadecimal(size_t begin, size_t digits, size_t end) {
    const std::string_view number = pattern_.substr(std::min(begin, pattern_.size()), digits);
    const bool good = number.size() == digits && digits > 0 && digits <= 6 &&
                      std::all_of(number.begin(), number.end(),
                                  [](unsigned char c) { return std::isxdigit(c) != 0; });
    if (!good) Refuse("a number after '\\x' or '\\u' that is not hexadecimal");
    const unsigned long value = std::stoul(std::string(number), nullptr, 16);
    // Two digits are a byte there, a code point here.
    if (digits == 2 && end == begin + 2 && value >= 0x80) Refuse("a byte above 0x7f by '\\x'");
    other_than_ascii_ = other_than_ascii_ || (!in_class_ && value >= 0x80);
    to_ += "\\x{" + std::string(number) + "}";
    at_ = end;
  }

  void Property() {
    const size_t end = pattern_.find('}', at_);
    if (Peek(2) != '{' || end == std::string_view::npos) Refuse("'\\p' without '{...}'");
    std::string_view name = pattern_.substr(at_ + 3, end - at_ - 3);
    bool negative = Peek(1) == 'P';
    if (name.starts_with('^')) {
      negative = !negative;
      name.remove_prefix(1);
    }
    std::string ours(name);
    if (IsIn(kScripts, name))
      ours = "sc:" + ours;  // without it, also characters that the script uses and others have
    else if (!IsIn(kCategories, name))
      Refuse("the property '" + Shortened(name) + "'");
    to_ += std::string(negative ? "\\P{" : "\\p{") + ours + "}";
    at_ = end + 1;
  }

  void Class() {
    letters_ += kApart;
    in_class_ = true;
    Copy(1);
    if (Peek() == '^') Copy(1);
    if (Peek() == ']') Refuse("a class that is empty or begins with ']'");
    while (Peek() != ']') {
      if (Done()) Refuse("a class without its end");
      if (Peek() == '[') Refuse("a class inside a class");
      if (Follows("&&")) Refuse("'&&' in a class");
      if (Peek() == '\\')
        ClassEscape();
      else
        Copy(1);
    }
    Copy(1);
    in_class_ = false;
  }

  void ClassEscape() {
    const char c = Peek(1);
    if (c == 's') return Write(std::string(kOnigSpace));
    if (c == 'S') return Write(std::string(kOnigNotSpace));
    if (c == 'w') return Write(std::string(kOnigWord));
    if (c == 'W' || c == 'b') Refuse("'\\" + std::string(1, c) + "' in a class");
    EscapeAnywhere();
  }

  void RefuseFoldings() const {
    if (other_than_ascii_) Refuse("'(?i)' with characters other than ASCII");
    const std::string lower = Lower(letters_);
    for (const std::string_view folding : kFoldings) {
      if (lower.find(folding) != std::string::npos)
        Refuse("'(?i)' with '" + std::string(folding) + "', which one character folds to,");
    }
  }

  static constexpr char kApart = '\1';  // between letters that are not neighbours
  const std::string_view pattern_;
  size_t at_ = 0;
  std::string to_, letters_;
  bool ignored_case_ = false, in_class_ = false, other_than_ascii_ = false;
};

}  // namespace

std::string FromOniguruma(std::string_view pattern) {
  return OnigTranslator(pattern).All();
}

std::string QuotedPattern(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && std::ispunct(static_cast<unsigned char>(c)))
      quoted += '\\';
    if (c == '\0')
      quoted += "\\x{0}";
    else
      quoted += c;
  }
  return quoted;
}

}  // namespace mxtrain::text
