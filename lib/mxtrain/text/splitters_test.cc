// SPDX-License-Identifier: Apache-2.0
// The splitters written by hand against the patterns in PCRE2; translated patterns; long texts.
#include "mxtrain/text/internal/splitters.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "mxtrain/text/internal/onig_pattern.h"
#include "mxtrain/text/internal/regex.h"
#include "mxtrain/text/internal/utf8.h"
#include "tests/support/error_message.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::text;
using Pieces = std::vector<std::string>;

constexpr KnownPattern kAllKnown[] = {KnownPattern::kGpt2, KnownPattern::kCl100k,
                                      KnownPattern::kCl100kSingleDigits};

Pieces PiecesByHand(KnownPattern pattern, std::string_view text) {
  Pieces pieces;
  while (!text.empty()) {
    pieces.emplace_back(text.substr(0, FirstPiece(pattern, text)));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

Pieces PiecesByRegex(const Regex& regex, std::string_view text) {
  Pieces pieces;
  Regex::Search search(regex, text);
  for (Regex::Match match = search.Next(); match.end > 0; match = search.Next())
    pieces.emplace_back(text.substr(match.begin, match.end - match.begin));
  return pieces;
}

// Characters that the patterns tell apart, and code points from everywhere.
std::string RandomText(std::mt19937* random) {
  static const std::vector<std::string> kParts = {
      "'",      "'s",     "'S",         "'t",      "'re",       "'RE",    "'Ve",    "'m",
      "'ll",    "'Ll",    "'d",         "'\u017f", "'l",        "'r",     " ",      " ",
      " ",      "  ",     "\n",         "\n",      "\r",        "\r\n",   "\t",     "\v",
      "\f",     "\u0085", "\u00a0",     "\u1680",  "\u180e",    "\u2003", "\u2028", "\u200b",
      "\u3000", "a",      "b",          "S",       "\u00e9",    "\u4e2d", "\u0301", "\u0903",
      "1",      "23",     "\u00b2",     "\u00bd",  "\u0663",    "\u2167", "!",      "-",
      "_",      "\u20ac", "\U0001f600", "\ufeff",  "\U0001d54f"};
  std::string text;
  for (size_t i = (*random)() % 12 + 1; i > 0; --i) {
    if ((*random)() % 8 != 0) {
      text += kParts[(*random)() % kParts.size()];
      continue;
    }
    const auto c = static_cast<uint32_t>((*random)() % ((*random)() % 2 ? 0x3000 : kCodePoints));
    AppendCodePoint(c >= 0xd800 && c <= 0xdfff ? 'x' : c, &text);
  }
  return text;
}

Pieces PiecesOfOnig(const std::string& pattern, std::string_view text) {
  return PiecesByRegex(Regex(FromOniguruma(pattern)), text);
}

TEST_CASE("splitters by hand split random texts as PCRE2 does by the pattern") {
  for (const KnownPattern pattern : kAllKnown) {
    const Regex regex(FromOniguruma(PatternOf(pattern)));
    std::mt19937 random(11);
    int different = 0;
    for (int i = 0; i < 60'000 && different < 5; ++i) {
      const std::string text = RandomText(&random);
      const Pieces hand = PiecesByHand(pattern, text), expected = PiecesByRegex(regex, text);
      if (hand == expected) continue;
      ++different;
      CAPTURE(text);
      CHECK(hand == expected);
    }
    CHECK(different == 0);
    CHECK(KnownPatternOf(PatternOf(pattern)) == pattern);
  }
  CHECK_FALSE(KnownPatternOf("x"));
}

TEST_CASE("splitters by hand put every code point where PCRE2 puts it") {
  for (const KnownPattern pattern : kAllKnown) {
    const Regex regex(FromOniguruma(PatternOf(pattern)));
    std::string text;
    for (uint32_t c = 0; c < kCodePoints; ++c) {
      if (c >= 0xd800 && c <= 0xdfff) continue;
      text += 'a';
      AppendCodePoint(c, &text);
    }
    CHECK(PiecesByHand(pattern, text) == PiecesByRegex(regex, text));
  }
}

TEST_CASE("GPT-2's splitter keeps a blank with the word behind it") {
  CHECK(PiecesByHand(KnownPattern::kGpt2, "I'm  here,\n\n it's 42") ==
        Pieces{"I", "'m", " ", " here", ",", "\n\n", " it", "'s", " 42"});
  CHECK(PiecesByHand(KnownPattern::kCl100k, "I'M  12345,\n\n x(y)") ==
        Pieces{"I", "'M", " ", " ", "123", "45", ",\n\n", " x", "(y", ")"});
}

TEST_CASE("long texts are split in linear time") {
  const std::string parts[] = {std::string(1 << 20, 'a'), std::string(1 << 20, ' '),
                               std::string(1 << 20, '\n'), std::string(1 << 20, '.')};
  for (const KnownPattern pattern : kAllKnown) {
    const Regex regex(FromOniguruma(PatternOf(pattern)));
    for (const std::string& text : parts) {
      CHECK(PiecesByHand(pattern, text) == PiecesByRegex(regex, text));
      CHECK(PiecesByHand(pattern, text + "x") == PiecesByRegex(regex, text + "x"));
    }
  }
}

TEST_CASE("Oniguruma's classes are translated where PCRE2 means others") {
  CHECK(PiecesOfOnig(R"(\s)", "a\u180e \u0085").size() == 2);
  CHECK(PiecesOfOnig(R"([^\S\n]+)", "a \t\nb\u3000") == Pieces{" \t", "\u3000"});
  CHECK(PiecesOfOnig(R"(\w+)", "a\u0301b_1\u00b2 \u24b6-\u200d") ==
        Pieces{"a\u0301b_1\u00b2", "\u24b6"});
  CHECK(PiecesOfOnig(R"([\w']+)", "a\u00b2b'") == Pieces{"a", "b'"});
  CHECK(PiecesOfOnig(R"(\bb\u0301\b)", "ab\u0301 b\u0301 b\u0301c") == Pieces{"b\u0301"});
  CHECK(PiecesOfOnig(R"(\h+)", "xyz 0fA") == Pieces{"0fA"});
  CHECK(PiecesOfOnig(R"(\p{Han}+)", "\u4e2d\u3001\u3042") == Pieces{"\u4e2d"});
  CHECK(PiecesOfOnig(R"(\p{^L}+|\P{^Lu})", "aB1") == Pieces{"B", "1"});
  CHECK(PiecesOfOnig("x{,2}y", "xxxy") == Pieces{"xxy"});
  CHECK(PiecesOfOnig("^a$", "a\nb\na") == Pieces{"a", "a"});
  CHECK(PiecesOfOnig(R"(\v|\x41|\u00e9)",
                     "\v\n"
                     "A\u00e9") == Pieces{"\v", "A", "\u00e9"});
  CHECK(PiecesOfOnig("(?i:'s)", "'S'\u017f") == Pieces{"'S", "'\u017f"});
}

TEST_CASE("what a pattern means elsewhere and not here is refused by its name") {
  const auto why = [](const std::string& pattern) {
    return MessageOf([&] { Regex regex(FromOniguruma(pattern)); });
  };
  CHECK(why("a(?i)b|c") == "the group '(?i)' in the pattern 'a(?i)b|c' (byte 1) is not covered");
  for (const auto& [pattern, name] :
       std::vector<std::pair<std::string, std::string>>{{R"((a)\1)", R"('\1')"},
                                                        {R"(\R)", R"('\R')"},
                                                        {R"(\X)", R"('\X')"},
                                                        {R"(\K)", R"('\K')"},
                                                        {"[a[b]]", "a class inside"},
                                                        {"[a&&b]", "'&&'"},
                                                        {"[[:alpha:]]", "a class inside"},
                                                        {R"(\p{Alpha})", "'Alpha'"},
                                                        {R"(\p)", "'\\p'"},
                                                        {"a{1,2}+", "'}+'"},
                                                        {"a{2}?", "'{n}?'"},
                                                        {"a{", "'{'"},
                                                        {"(?<n>a)", "'(?<n'"},
                                                        {"(?m:.)", "'(?m:'"},
                                                        {"(?x) a", "'(?x)'"},
                                                        {"(*UTF)a", "'(*'"},
                                                        {"(?i:ss)", "'ss'"},
                                                        {"(?i:\u00e9)", "ASCII"},
                                                        {R"(\xe9)", "a byte above"},
                                                        {R"([\W])", R"('\W')"},
                                                        {"[a", "without its end"},
                                                        {"a]", "a ']'"},
                                                        {R"(\)", "'\\"}}) {
    CAPTURE(pattern);
    CHECK(Says(why(pattern), name));
    CHECK(Says(why(pattern), "is not covered"));
  }
  CHECK(Says(why("a*"), "matches the empty text"));
  CHECK(Says(why("(a"), "is not a valid regular expression: at its byte"));
}

TEST_CASE("a pattern that would take forever is an error") {
  const Regex regex("(?:a+a+)+[bc]");
  const std::string text(5'000, 'a');
  CHECK(Says(MessageOf([&] { regex.Matches(text); }), "cannot be matched from byte 0"));
}

}  // namespace
}  // namespace mxtrain::test
