// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/table_text.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/first_record.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr size_t kMostBytes = size_t{16} << 30;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

char FindDelimiter(std::string_view text) {
  constexpr std::string_view kDelimiters = ",;\t|";
  size_t counts[kDelimiters.size()] = {};
  bool quoted = false, seen = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == '\n' && seen && !quoted) break;
    seen = seen || (c != '\n' && c != '\r' && c != ' ');
    if (const size_t k = kDelimiters.find(c); !quoted && k != std::string_view::npos) ++counts[k];
  }
  return kDelimiters[static_cast<size_t>(std::max_element(std::begin(counts), std::end(counts)) -
                                         std::begin(counts))];
}

char DelimiterOf(const std::string& asked, std::string_view text) {
  if (asked == "auto") return FindDelimiter(text);
  if (asked == "tab" || asked == "\\t") return '\t';
  if (asked.size() == 1 && asked != "\"" && asked != "\n") return asked[0];
  Throw(ErrorKind::kConfig, "csv: delimiter = '{}': expected one character, tab or auto", asked);
}

}  // namespace

TableText::TableText(const std::string& path, const std::string& delimiter)
    : TableText(path, ReadMaybeGzip(path, kMostBytes, Readable::kFileOrPipe), delimiter) {}

TableText::TableText(std::string path, std::string text, const std::string& delimiter)
    : path_(std::move(path)), text_(std::move(text)) {
  if (text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
  delimiter_ = DelimiterOf(delimiter, text_);
}

// The cell whose opening quote is at *at; afterwards *at is at the delimiter, the end of the line
// or of the text.
std::string_view TableText::TakeQuoted(size_t* at, int64_t* line) {
  const int64_t opened = *line;
  const size_t begin = ++*at;
  bool escaped = false;
  for (;; ++*at) {
    if (*at >= text_.size())
      Throw(ErrorKind::kData, "{}:{}: a quote is opened and never closed", path_, opened);
    if (text_[*at] == '\n') ++*line;
    if (text_[*at] != '"') continue;
    if (*at + 1 >= text_.size() || text_[*at + 1] != '"') break;
    escaped = true;
    ++*at;
  }
  std::string_view cell = std::string_view(text_).substr(begin, *at - begin);
  ++*at;
  while (*at < text_.size() && text_[*at] != delimiter_ &&
         (text_[*at] == ' ' || text_[*at] == '\t' || text_[*at] == '\r'))
    ++*at;
  if (*at < text_.size() && text_[*at] != delimiter_ && text_[*at] != '\n') {
    Throw(ErrorKind::kData,
          "{}:{}: text follows the quote that ends a cell; a quote inside quotes is written twice",
          path_, *line);
  }
  if (!escaped) return cell;
  std::string& plain = unescaped_.emplace_back();
  for (size_t i = 0; i < cell.size(); ++i) {
    plain += cell[i];
    if (cell[i] == '"') ++i;
  }
  return plain;
}

std::string_view TableText::TakePlain(size_t* at) const {
  const size_t begin = *at;
  while (*at < text_.size() && text_[*at] != delimiter_ && text_[*at] != '\n') ++*at;
  return Trim(std::string_view(text_).substr(begin, *at - begin), kBlanks);
}

void TableText::ForEachRecord(const Visit& visit) {
  std::vector<std::string_view> cells;
  int64_t line = 1;
  for (size_t at = 0; at < text_.size();) {
    const int64_t first_line = line;
    cells.clear();
    bool quoted = false;
    for (;; ++at) {
      const auto is_blank = [&](char c) { return (c == ' ' || c == '\t') && c != delimiter_; };
      while (at < text_.size() && is_blank(text_[at])) ++at;
      const bool quote = at < text_.size() && text_[at] == '"';
      quoted = quoted || quote;
      cells.push_back(quote ? TakeQuoted(&at, &line) : TakePlain(&at));
      if (at >= text_.size() || text_[at] == '\n') break;
    }
    ++at;
    ++line;
    if (cells.size() > 1 || quoted || !cells[0].empty()) visit(cells, first_line);
  }
}

std::vector<std::string> FirstRecord(std::string text, const std::string& delimiter) {
  std::vector<std::string> first;
  try {
    TableText("", std::move(text), delimiter)
        .ForEachRecord([&first](const std::vector<std::string_view>& cells, int64_t) {
          if (first.empty()) first.assign(cells.begin(), cells.end());
        });
  } catch (const Error&) {  // a later record that is cut, or text that is no table
  }
  return first;
}

}  // namespace mxtrain::io
