// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/number_like.h"

#include <algorithm>
#include <array>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr std::array<std::string_view, 10> kCurrencies = {"€",   "$",   "£",   "¥",   "₹",
                                                          "EUR", "USD", "GBP", "CHF", "JPY"};
constexpr std::array<std::string_view, 3> kSpaces = {" ", "\u00a0", "\u202f"};
constexpr std::array<std::string_view, 2> kApostrophes = {"'", "\u2019"};
constexpr std::string_view kMinus = "\u2212";
constexpr size_t kGroup = 3;  // digits of thousands

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Removes blanks of any kind at both ends.
std::string_view Bare(std::string_view text) {
  for (bool removed = true; removed;) {
    removed = false;
    for (const std::string_view space : kSpaces) {
      if (text.starts_with(space)) text.remove_prefix(space.size()), removed = true;
      if (text.ends_with(space)) text.remove_suffix(space.size()), removed = true;
    }
  }
  return text;
}

// Removes a sign at the beginning or end.
template <size_t N>
bool Take(const std::array<std::string_view, N>& signs, std::string_view* text) {
  for (const std::string_view sign : signs) {
    if (!text->starts_with(sign) && !text->ends_with(sign)) continue;
    if (text->starts_with(sign))
      text->remove_prefix(sign.size());
    else
      text->remove_suffix(sign.size());
    *text = Bare(*text);
    return true;
  }
  return false;
}

// Digits in groups of three after the first of one to three, none of which begins with 0.
bool AreGroups(std::string_view digits, std::string_view separator, std::string* joined) {
  joined->clear();
  for (bool first = true;; first = false) {
    const size_t end = digits.find(separator);
    const std::string_view group = digits.substr(0, end);
    const bool fits = first ? !group.empty() && group.size() <= kGroup && group[0] != '0'
                            : group.size() == kGroup;
    if (!fits || !std::ranges::all_of(group, IsDigit)) return false;
    joined->append(group);
    if (end == std::string_view::npos) return true;
    digits.remove_prefix(end + separator.size());
  }
}

// Joins the thousands before the decimals; false if what is between them separates none.
bool JoinThousands(std::string_view separator, std::string_view decimals, std::string* text) {
  const size_t last = text->rfind(separator);
  if (last == std::string::npos) return true;
  const size_t end = std::min(text->find_first_of(decimals, last + separator.size()), text->size());
  std::string joined;
  if (!AreGroups(std::string_view(*text).substr(0, end), separator, &joined)) return false;
  *text = joined + text->substr(end);
  return true;
}

}  // namespace

bool HasThousandPoints(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  std::string joined;
  return text.find('.') != std::string_view::npos && AreGroups(text, ".", &joined);
}

std::optional<NumberLike> LooksLikeNumber(std::string_view cell) {
  std::vector<std::string> with;
  std::string_view rest = Bare(cell);
  const bool percent = Take(std::array<std::string_view, 1>{"%"}, &rest);
  const bool currency = Take(kCurrencies, &rest);
  std::string sign;
  if (rest.starts_with(kMinus)) {
    with.emplace_back("a minus sign of Unicode");
    rest.remove_prefix(kMinus.size());
    sign = "-";
  } else if (rest.starts_with('-') || rest.starts_with('+')) {
    if (rest[0] == '-') sign = "-";
    rest.remove_prefix(1);
  }
  std::string text(Bare(rest));
  if (text.empty() || !IsDigit(text[0])) return std::nullopt;
  const auto take = [&](std::string_view separator, std::string_view decimals, const char* name) {
    if (text.find(separator) == std::string::npos) return true;
    if (with.empty() || with.back() != name) with.emplace_back(name);
    return JoinThousands(separator, decimals, &text);
  };
  for (const std::string_view space : kSpaces) {
    if (!take(space, ".,", "blanks between thousands")) return std::nullopt;
  }
  for (const std::string_view mark : kApostrophes) {
    if (!take(mark, ".,", "apostrophes between thousands")) return std::nullopt;
  }
  const size_t comma = text.rfind(','), point = text.rfind('.');
  const bool both = comma != std::string::npos && point != std::string::npos;
  const auto commas = std::ranges::count(text, ','), points = std::ranges::count(text, '.');
  if ((both && comma < point) || commas > 1) {
    if (!take(",", ".", "commas between thousands")) return std::nullopt;
  } else if (both || points > 1) {
    if (!take(".", ",", "points between thousands")) return std::nullopt;
  }
  if (const size_t decimal = text.find(','); decimal != std::string::npos) {
    with.emplace_back("decimal commas");
    text[decimal] = '.';
  }
  if (percent) with.emplace_back("percent signs");
  if (currency) with.emplace_back("currencies");
  const bool digits = std::ranges::all_of(text, [](char c) { return IsDigit(c) || c == '.'; });
  double ignored = 0;
  if (with.empty() || !digits || !ParseNumber(text, &ignored)) return std::nullopt;
  return NumberLike{format("{}", join(with, " and ")), sign + text};
}

}  // namespace mxtrain::io
