// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/text_columns.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/number_like.h"

namespace mxtrain::io {

namespace {

template <typename T>
bool Parse(std::string_view text, T* value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return status == std::errc() && end == text.data() + text.size();
}

// The same number with a decimal point; "" if it is none.
std::string WithPoint(std::string_view text) {
  const size_t comma = text.find(',');
  const std::string_view whole = text.substr(0, comma);
  if (comma == std::string_view::npos) {
    std::string plain(text);
    if (HasThousandPoints(text)) std::erase(plain, '.');
    return plain.find('.') == std::string::npos ? plain : "";
  }
  if (text.substr(comma + 1).find_first_of(".,") != std::string_view::npos) return "";
  std::string plain;
  for (size_t i = 0; i < whole.size(); ++i) {
    const bool separates = whole[i] == '.';
    const bool of_thousands =
        (whole.size() - i) % 4 == 0 && !plain.empty() && plain.back() >= '0' && plain.back() <= '9';
    if (separates && !of_thousands) return "";
    if (!separates) plain += whole[i];
  }
  return plain + "." + std::string(text.substr(comma + 1));
}

template <typename T>
bool ParseComma(std::string_view text, T* value) {
  const std::string plain = WithPoint(text);
  return !plain.empty() && Parse(std::string_view(plain), value);
}

}  // namespace

bool ParseCommaNumber(std::string_view text, float* value) {
  return ParseComma(text, value);
}
bool ParseCommaNumber(std::string_view text, double* value) {
  return ParseComma(text, value);
}

bool HasDecimalComma(std::string_view text) {
  double ignored = 0;
  const size_t comma = text.find(',');
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return comma != std::string_view::npos && comma > 0 && comma + 1 < text.size() &&
         is_digit(text[comma - 1]) && is_digit(text[comma + 1]) && ParseCommaNumber(text, &ignored);
}

bool ParseNumber(std::string_view text, float* value) {
  return Parse(text, value);
}
bool ParseNumber(std::string_view text, double* value) {
  return Parse(text, value);
}

bool IsOutOfRange(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  float ignored = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), ignored);
  return status == std::errc::result_out_of_range && end == text.data() + text.size();
}

std::vector<std::string_view> SplitCells(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  for (size_t begin = 0;;) {
    const size_t end = line.find(separator, begin);
    cells.push_back(Trim(line.substr(begin, end - begin), kBlanks));
    if (end == std::string_view::npos) return cells;
    begin = end + 1;
  }
}

void ForEachLine(std::string_view text,
                 const std::function<void(std::string_view line, int64_t number)>& visit) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end), kBlanks);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty()) visit(line, number);
  }
}

}  // namespace mxtrain::io
