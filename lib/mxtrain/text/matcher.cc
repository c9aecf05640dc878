// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/matcher.h"

#include <utility>

#include "mxtrain/text/internal/onig_pattern.h"
#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

// Between matches that come in order.
class SpanList {
 public:
  explicit SpanList(std::vector<Matcher::Span>* spans) : spans_(*spans) { spans_.clear(); }
  void Match(size_t begin, size_t end) {
    if (at_ < begin) spans_.push_back({at_, begin, false});
    spans_.push_back({begin, end, true});
    at_ = end;
  }
  void End(size_t size) {
    if (at_ < size) spans_.push_back({at_, size, false});
  }

 private:
  std::vector<Matcher::Span>& spans_;
  size_t at_ = 0;
};

}  // namespace

Matcher Matcher::OfRegex(const std::string& pcre_pattern) {
  Matcher matcher;
  matcher.regex_ = std::make_shared<const Regex>(pcre_pattern);
  return matcher;
}

Matcher Matcher::OfCharacters(std::function<bool(uint32_t)> predicate) {
  Matcher matcher;
  matcher.predicate_ = std::move(predicate);
  return matcher;
}

Matcher Matcher::OfJson(const JsonNode& node) {
  return AtNode(node, [&] {
    if (node.value().is_string()) return OfRegex(QuotedPattern(node.Text()));
    if (const auto fixed = node.Find("String")) return OfRegex(QuotedPattern(fixed->Text()));
    return OfRegex(FromOniguruma(node.At("Regex").Text()));
  });
}

void Matcher::Find(std::string_view text, std::vector<Span>* spans) const {
  SpanList list(spans);
  if (regex_) {
    Regex::Search search(*regex_, text);
    for (Regex::Match match = search.Next(); match.end > 0; match = search.Next())
      list.Match(match.begin, match.end);
  } else {
    size_t at = 0;
    ForEachCodePoint(text, [&](uint32_t c, std::string_view bytes) {
      if (predicate_(c)) list.Match(at, at + bytes.size());
      at += bytes.size();
    });
  }
  list.End(text.size());
}

}  // namespace mxtrain::text
