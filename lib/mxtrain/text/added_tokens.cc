// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/added_tokens.h"

#include <utility>

#include "mxtrain/text/internal/unicode_class.h"
#include "mxtrain/text/internal/utf8.h"
#include "mxtrain/text/internal/vocabulary.h"

namespace mxtrain::text {
namespace {

// Searching takes as many steps for a byte of text in the worst case.
constexpr size_t kLongestAddedToken = 1000;

const Regex& WordCharacter() {
  static const Regex regex(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}])");
  return regex;
}

// The begin of the last character of a text that is not empty.
size_t LastCharacter(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

bool BeginsWithSpace(std::string_view text) {
  return !text.empty() && IsWhiteSpace(DecodeCodePoint(text).value);
}

}  // namespace

std::vector<AddedToken> ReadAddedTokens(const JsonNode& node) {
  std::vector<AddedToken> tokens;
  for (size_t i = 0; i < node.ArraySize(); ++i) {
    const JsonNode item = node.At(i);
    AddedToken token;
    token.content = item.At("content").Text();
    token.id = static_cast<TokenId>(item.At("id").Number(kMostIds - 1));
    token.single_word = item.BoolOr("single_word", false);
    token.lstrip = item.BoolOr("lstrip", false);
    token.rstrip = item.BoolOr("rstrip", false);
    token.special = item.BoolOr("special", false);
    token.normalized = item.BoolOr("normalized", !token.special);
    if (token.content.empty()) item.Fail("the token is empty");
    if (token.content.size() > kLongestAddedToken)
      item.Fail(format("the token has {} bytes; at most {} are covered", token.content.size(),
                       kLongestAddedToken));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, const Normalizer* normalizer)
    : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    const std::string pattern = normalizer ? normalizer->Apply(token.content) : token.content;
    if (pattern.empty() || pattern.size() > 2 * kLongestAddedToken) continue;
    trie_.Insert(pattern, static_cast<uint32_t>(i));
    begins_[static_cast<unsigned char>(pattern[0])] = true;
    has_plain_ = has_plain_ || !token.special;
  }
}

AddedTokenFinder::Found AddedTokenFinder::FindFrom(std::string_view text, size_t* at, size_t done,
                                                   bool parse_special) const {
  while (*at < text.size()) {
    if (!begins_[static_cast<unsigned char>(text[*at])]) {
      ++*at;
      continue;
    }
    const ByteTrie::Hit hit = trie_.Longest(text.substr(*at));
    if (hit.bytes == 0) {
      ++*at;
      continue;
    }
    const AddedToken& token = tokens_[hit.value];
    size_t begin = *at, end = *at + hit.bytes;
    *at = end;
    if ((token.special && !parse_special) || (token.single_word && InsideWord(text, begin, end)))
      continue;
    while (token.lstrip && begin > done) {
      const size_t last = LastCharacter(text.substr(0, begin));
      if (last < done || !BeginsWithSpace(text.substr(last))) break;
      begin = last;
    }
    while (token.rstrip && BeginsWithSpace(text.substr(end)))
      end += DecodeCodePoint(text.substr(end)).bytes;
    *at = end;
    return {&token, begin, end};
  }
  return {};
}

bool AddedTokenFinder::InsideWord(std::string_view text, size_t begin, size_t end) const {
  const std::string_view before = text.substr(0, begin), after = text.substr(end);
  if (!before.empty() && WordCharacter().Matches(before.substr(LastCharacter(before)))) return true;
  return !after.empty() && WordCharacter().Matches(after.substr(0, DecodeCodePoint(after).bytes));
}

}  // namespace mxtrain::text
