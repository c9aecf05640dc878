// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/table_text.h"

#include <algorithm>
#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/first_record.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/internal/table_delimiter.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr size_t kMostBytes = size_t{16} << 30;

// Excel's line "sep=;" before the header, perhaps in quotes, names the separator. It becomes empty,
// so that the lines after it keep their numbers.
std::optional<char> TakeSeparatorLine(std::string* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  std::string_view line = std::string_view(*text).substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() > 1 && line.starts_with('"') && line.ends_with('"'))
    line = line.substr(1, line.size() - 2);
  constexpr std::string_view kName = "sep=";
  if (line.size() != kName.size() + 1 || Lower(line.substr(0, kName.size())) != kName)
    return std::nullopt;
  const char separator = line.back();
  text->erase(0, end);
  return separator;
}

}  // namespace

TableText::TableText(const std::string& path, const std::string& delimiter)
    : TableText(path, ReadMaybeGzip(path, kMostBytes, Readable::kFileOrPipe), delimiter) {}

TableText::TableText(std::string path, std::string text, const std::string& delimiter)
    : path_(std::move(path)), text_(std::move(text)) {
  text_ = PlainText(std::move(text_), path_);
  const std::optional<char> named = TakeSeparatorLine(&text_);
  delimiter_ = named && delimiter == "auto" ? *named : DelimiterOf(delimiter, text_);
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
  while (*at < text_.size() && !Separates(text_[*at]) &&
         kBlanks.find(text_[*at]) != std::string_view::npos)
    ++*at;
  if (*at < text_.size() && !Separates(text_[*at]) && text_[*at] != '\n') {
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
  while (*at < text_.size() && !Separates(text_[*at]) && text_[*at] != '\n') ++*at;
  return Trim(std::string_view(text_).substr(begin, *at - begin), kBlanks);
}

// To the last blank before a cell, or to the end of the record.
void TableText::PassBlanks(size_t* at) const {
  size_t next = *at;
  while (next < text_.size() && kBlanks.find(text_[next]) != std::string_view::npos) ++next;
  const bool ends = next >= text_.size() || text_[next] == '\n';
  if (next > *at) *at = ends ? next : next - 1;
}

void TableText::ForEachRecord(const Visit& visit) {
  std::vector<std::string_view> cells;
  int64_t line = 1;
  for (size_t at = 0; at < text_.size();) {
    const int64_t first_line = line;
    cells.clear();
    bool quoted = false;
    for (;; ++at) {
      while (at < text_.size() && IsPadding(text_[at])) ++at;
      const bool quote = at < text_.size() && text_[at] == '"';
      quoted = quoted || quote;
      cells.push_back(quote ? TakeQuoted(&at, &line) : TakePlain(&at));
      if (delimiter_ == kRunOfBlanks) PassBlanks(&at);
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
