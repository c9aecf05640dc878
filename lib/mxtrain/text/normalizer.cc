// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/normalizer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "mxtrain/text/internal/matcher.h"
#include "mxtrain/text/internal/unicode_class.h"
#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

// A few bytes can name a replacement that makes a text a thousand times as long, again and again.
constexpr size_t kMostGrowth = 64, kLeastBound = size_t{1} << 20, kMostNormalizers = 32;

std::string LowerText(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  ForEachCodePoint(text, [&](uint32_t c, std::string_view) { AppendLower(c, &lower); });
  return lower;
}

template <typename Predicate>
std::string WithoutCharacters(std::string_view text, const Predicate& removed) {
  std::string kept;
  kept.reserve(text.size());
  size_t begin = 0, at = 0;  // of what is kept as it is, and of the character
  ForEachCodePoint(text, [&](uint32_t c, std::string_view bytes) {
    if (removed(c)) {
      kept += text.substr(begin, at - begin);
      begin = at + bytes.size();
    }
    at += bytes.size();
  });
  return kept.append(text.substr(begin));
}

// BERT's cleaning: control characters go, white space becomes a blank.
std::string CleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  ForEachCodePoint(text, [&](uint32_t c, std::string_view bytes) {
    const bool layout = c == '\t' || c == '\n' || c == '\r';
    const bool printable = c > ' ' && c < 0x7f;
    if (printable) return clean.push_back(static_cast<char>(c));
    if (c == 0 || c == kReplacement || (!layout && IsControlOrFormat(c))) return;
    if (IsWhiteSpace(c))
      clean += ' ';
    else
      clean += bytes;
  });
  return clean;
}

std::string WithApartChinese(std::string_view text) {
  std::string apart;
  apart.reserve(text.size());
  size_t begin = 0, at = 0;  // of what is copied as it is, and of the character
  ForEachCodePoint(text, [&](uint32_t c, std::string_view bytes) {
    if (IsBertChinese(c)) {
      apart.append(text.substr(begin, at - begin)).append(" ").append(bytes).append(" ");
      begin = at + bytes.size();
    }
    at += bytes.size();
  });
  return apart.append(text.substr(begin));
}

std::string WithoutOuterSpace(std::string_view text, bool left, bool right) {
  size_t first = text.size(), last = 0, at = 0;  // of what is not white space
  ForEachCodePoint(text, [&](uint32_t c, std::string_view bytes) {
    if (!IsWhiteSpace(c)) {
      first = std::min(first, at);
      last = at + bytes.size();
    }
    at += bytes.size();
  });
  const size_t begin = left ? first : 0, end = right ? last : text.size();
  return begin < end ? std::string(text.substr(begin, end - begin)) : "";
}

std::string Replaced(const Matcher& matcher, const std::string& content, std::string_view text) {
  std::string replaced;
  std::vector<Matcher::Span> spans;
  matcher.Find(text, &spans);
  for (const Matcher::Span& span : spans) {
    if (span.is_match)
      replaced += content;
    else
      replaced += text.substr(span.begin, span.end - span.begin);
  }
  return replaced;
}

}  // namespace

Normalizer::Normalizer(const JsonNode& node) {
  AddSteps(node);
}

void Normalizer::AddSteps(const JsonNode& node) {
  const std::string& type = node.Type();
  const auto form = [this](NormalForm f) {
    steps_.emplace_back([f](std::string_view text) { return Normalized(f, text); });
  };
  if (type == "Sequence") {
    const JsonNode all = node.At("normalizers");
    for (size_t i = 0; i < all.ArraySize(); ++i) AddSteps(all.At(i));
  } else if (type == "NFC") {
    form(NormalForm::kNfc);
  } else if (type == "NFD") {
    form(NormalForm::kNfd);
  } else if (type == "NFKC") {
    form(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    form(NormalForm::kNfkd);
  } else if (type == "Lowercase") {
    steps_.emplace_back(LowerText);
  } else if (type == "StripAccents") {
    steps_.emplace_back([](std::string_view text) { return WithoutCharacters(text, IsMark); });
  } else if (type == "Strip") {
    steps_.emplace_back([left = node.BoolOr("strip_left", true),
                         right = node.BoolOr("strip_right", true)](std::string_view text) {
      return WithoutOuterSpace(text, left, right);
    });
  } else if (type == "Prepend") {
    steps_.emplace_back([prefix = node.At("prepend").Text()](std::string_view text) {
      return text.empty() ? std::string() : prefix + std::string(text);
    });
  } else if (type == "Replace") {
    steps_.emplace_back(
        [matcher = std::make_shared<const Matcher>(Matcher::OfJson(node.At("pattern"))),
         content = node.At("content").Text()](std::string_view text) {
          return Replaced(*matcher, content, text);
        });
  } else if (type == "BertNormalizer") {
    const bool lower = node.BoolOr("lowercase", true);
    if (node.BoolOr("clean_text", true)) steps_.emplace_back(CleanText);
    if (node.BoolOr("handle_chinese_chars", true)) steps_.emplace_back(WithApartChinese);
    if (node.BoolOr("strip_accents", lower)) {
      form(NormalForm::kNfd);
      steps_.emplace_back(
          [](std::string_view text) { return WithoutCharacters(text, IsNonspacingMark); });
    }
    if (lower) steps_.emplace_back(LowerText);
  } else {
    node.Fail("the normalizer '" + type + "' is not covered");
  }
  if (steps_.size() > kMostNormalizers) node.Fail("there are too many normalizers");
}

std::string Normalizer::Apply(std::string_view text) const {
  const size_t bound = std::max(kLeastBound, kMostGrowth * text.size());
  std::string now(text);
  for (const Step& step : steps_) {
    now = step(now);
    if (now.size() > bound)
      Throw(ErrorKind::kData, "a text of {} bytes becomes {} bytes when it is normalized",
            text.size(), now.size());
  }
  return now;
}

}  // namespace mxtrain::text
