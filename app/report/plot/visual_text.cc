// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/visual_text.h"

#include <algorithm>
#include <array>
#include <optional>

namespace mxtrain::plot {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool IsWithin(char32_t c, char32_t first, char32_t last) {
  return c >= first && c <= last;
}

// Removes and returns the first character of `text`.
char32_t TakeCharacter(std::string_view* text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>((*text)[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  char32_t code = length == 1 ? first : first & (0x7Fu >> length);
  bool whole = first < 0x80 || (first >= 0xC2 && first < 0xF5 && length <= text->size());
  for (size_t i = 1; whole && i < length; ++i) {
    whole = (byte(i) & 0xC0) == 0x80;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  text->remove_prefix(whole ? length : 1);
  return whole ? code : kReplacement;
}

bool IsUnseen(char32_t c) {
  return IsWithin(c, 0x200B, 0x200F) || IsWithin(c, 0x202A, 0x202E) ||
         IsWithin(c, 0x2060, 0x2069) || IsWithin(c, 0xFE00, 0xFE0F) || c == 0xFEFF || c == 0x61C;
}

// Letters with presentation forms: the first of them, then final, initial and medial; letters that
// do not join the next one have the first two alone.
struct Joining {
  char32_t letter, isolated;
  int forms;
};
constexpr std::array kJoining = std::to_array<Joining>({{0x0621, 0xFE80, 1},
                                                        {0x0622, 0xFE81, 2},
                                                        {0x0623, 0xFE83, 2},
                                                        {0x0624, 0xFE85, 2},
                                                        {0x0625, 0xFE87, 2},
                                                        {0x0626, 0xFE89, 4},
                                                        {0x0627, 0xFE8D, 2},
                                                        {0x0628, 0xFE8F, 4},
                                                        {0x0629, 0xFE93, 2},
                                                        {0x062A, 0xFE95, 4},
                                                        {0x062B, 0xFE99, 4},
                                                        {0x062C, 0xFE9D, 4},
                                                        {0x062D, 0xFEA1, 4},
                                                        {0x062E, 0xFEA5, 4},
                                                        {0x062F, 0xFEA9, 2},
                                                        {0x0630, 0xFEAB, 2},
                                                        {0x0631, 0xFEAD, 2},
                                                        {0x0632, 0xFEAF, 2},
                                                        {0x0633, 0xFEB1, 4},
                                                        {0x0634, 0xFEB5, 4},
                                                        {0x0635, 0xFEB9, 4},
                                                        {0x0636, 0xFEBD, 4},
                                                        {0x0637, 0xFEC1, 4},
                                                        {0x0638, 0xFEC5, 4},
                                                        {0x0639, 0xFEC9, 4},
                                                        {0x063A, 0xFECD, 4},
                                                        {0x0641, 0xFED1, 4},
                                                        {0x0642, 0xFED5, 4},
                                                        {0x0643, 0xFED9, 4},
                                                        {0x0644, 0xFEDD, 4},
                                                        {0x0645, 0xFEE1, 4},
                                                        {0x0646, 0xFEE5, 4},
                                                        {0x0647, 0xFEE9, 4},
                                                        {0x0648, 0xFEED, 2},
                                                        {0x0649, 0xFEEF, 2},
                                                        {0x064A, 0xFEF1, 4},
                                                        // Urdu and Persian.
                                                        {0x0679, 0xFB66, 4},
                                                        {0x067E, 0xFB56, 4},
                                                        {0x0686, 0xFB7A, 4},
                                                        {0x0688, 0xFB88, 2},
                                                        {0x0691, 0xFB8C, 2},
                                                        {0x0698, 0xFB8A, 2},
                                                        {0x06A9, 0xFB8E, 4},
                                                        {0x06AF, 0xFB92, 4},
                                                        {0x06BA, 0xFB9E, 2},
                                                        {0x06BE, 0xFBAA, 4},
                                                        {0x06C1, 0xFBA6, 4},
                                                        {0x06CC, 0xFBFC, 4},
                                                        {0x06D2, 0xFBAE, 2}});
constexpr char32_t kTatweel = 0x0640, kLam = 0x0644;

const Joining* JoiningOf(char32_t c) {
  const auto found = std::ranges::lower_bound(kJoining, c, {}, &Joining::letter);
  return found != kJoining.end() && found->letter == c ? &*found : nullptr;
}
bool JoinsNext(char32_t c) {
  const Joining* const letter = JoiningOf(c);
  return c == kTatweel || (letter && letter->forms == 4);
}
bool JoinsPrevious(char32_t c) {
  const Joining* const letter = JoiningOf(c);
  return c == kTatweel || (letter && letter->forms > 1);
}
// Marks above and below letters, which letters join across.
bool IsArabicMark(char32_t c) {
  return IsWithin(c, 0x0610, 0x061A) || IsWithin(c, 0x064B, 0x065F) || c == 0x0670 ||
         IsWithin(c, 0x06D6, 0x06DC);
}
// Isolated form of lam with a kind of alef, drawn as one; its final form follows.
std::optional<char32_t> LamWith(char32_t alef) {
  switch (alef) {
    case 0x0622:
      return 0xFEF5;
    case 0x0623:
      return 0xFEF7;
    case 0x0625:
      return 0xFEF9;
    case 0x0627:
      return 0xFEFB;
    default:
      return std::nullopt;
  }
}

// In the order of reading.
std::u32string WithForms(const std::u32string& text) {
  std::u32string shaped;
  char32_t before = 0;  // the letter, not a mark
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (IsArabicMark(c)) {
      shaped += c;
      continue;
    }
    size_t next = i + 1;
    while (next < text.size() && IsArabicMark(text[next])) ++next;
    const char32_t after = next < text.size() ? text[next] : 0;
    const bool joined = JoinsNext(before) && JoinsPrevious(c);
    if (const auto lam = c == kLam && next == i + 1 ? LamWith(after) : std::nullopt) {
      shaped += *lam + (joined ? 1 : 0);
      before = after;
      i = next;
      continue;
    }
    if (const Joining* const letter = JoiningOf(c)) {
      const bool joins = JoinsNext(c) && JoinsPrevious(after);
      shaped += letter->isolated + (joined ? 1u : 0u) + (joins ? 2u : 0u);
    } else {
      shaped += c;
    }
    before = c;
  }
  return shaped;
}

bool IsFromRight(char32_t c) {
  return IsWithin(c, 0x0590, 0x08FF) || IsWithin(c, 0xFB1D, 0xFDFF) ||
         IsWithin(c, 0xFE70, 0xFEFC) || IsWithin(c, 0x10800, 0x10FFF) ||
         IsWithin(c, 0x1E800, 0x1EFFF);
}
bool IsDigit(char32_t c) {
  return IsWithin(c, '0', '9') || IsWithin(c, 0x0660, 0x0669) || IsWithin(c, 0x06F0, 0x06F9);
}
// Punctuation, spaces and symbols, which follow the letters around them.
bool IsNeutral(char32_t c) {
  return (c < 0x80 && !IsWithin(c | 0x20, 'a', 'z')) || IsWithin(c, 0xA0, 0xBF) ||
         IsWithin(c, 0x2000, 0x2BFF) || IsWithin(c, 0x3000, 0x303F) ||
         IsWithin(c, 0x1F000, 0x1FAFF);
}
char32_t Mirrored(char32_t c) {
  static constexpr std::u32string_view kPairs = U"()[]{}<>\u00AB\u00BB";
  const size_t at = kPairs.find(c);
  return at == kPairs.npos ? c : kPairs[at ^ 1];
}

// From the first to the last letter of a part that is read from the right.
void Turn(char32_t* begin, char32_t* end) {
  std::reverse(begin, end);
  std::transform(begin, end, begin, Mirrored);
  // Numbers are read from the left everywhere, with their points and commas.
  for (char32_t* at = begin; at < end; ++at) {
    if (!IsDigit(*at)) continue;
    char32_t* last = at + 1;
    while (last < end && (IsDigit(*last) ||
                          (last + 1 < end && (*last == '.' || *last == ',') && IsDigit(last[1]))))
      ++last;
    std::reverse(at, last);
    at = last - 1;
  }
  // Marks follow the letter on which they stand.
  for (char32_t* at = begin; at < end; ++at) {
    char32_t* letter = at;
    while (letter < end && IsArabicMark(*letter)) ++letter;
    if (letter > at && letter < end) std::rotate(at, letter, letter + 1);
    at = letter;
  }
}

}  // namespace

std::u32string CharactersOf(std::string_view text) {
  std::u32string characters;
  while (!text.empty()) characters += TakeCharacter(&text);
  return characters;
}

std::string Utf8Of(std::u32string_view text) {
  std::string bytes;
  for (const char32_t c : text) {
    const auto put = [&](char32_t lead, int shift) {
      bytes += static_cast<char>(lead | (c >> shift));
      for (shift -= 6; shift >= 0; shift -= 6)
        bytes += static_cast<char>(0x80 | (c >> shift & 0x3F));
    };
    if (c < 0x80)
      put(0, 0);
    else if (c < 0x800)
      put(0xC0, 6);
    else if (c < 0x10000)
      put(0xE0, 12);
    else
      put(0xF0, 18);
  }
  return bytes;
}

std::u32string VisualText(std::string_view text) {
  std::u32string line = CharactersOf(text);
  if (std::ranges::all_of(line, [](char32_t c) { return c < 0x300; })) return line;
  line = WithForms(line);
  std::erase_if(line, IsUnseen);
  for (size_t i = 0; i < line.size(); ++i) {
    if (!IsFromRight(line[i])) continue;
    size_t end = i + 1;  // behind the last letter from the right
    for (size_t k = end; k < line.size() && (IsFromRight(line[k]) || IsNeutral(line[k])); ++k) {
      if (IsFromRight(line[k])) end = k + 1;
    }
    Turn(&line[i], line.data() + end);
    i = end - 1;
  }
  return line;
}

}  // namespace mxtrain::plot
