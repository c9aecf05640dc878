// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/table_delimiter.h"

#include <algorithm>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr size_t kRecordsLooked = 20;
constexpr std::string_view kDelimiters = ",;\t|";

// Cells of one record, as far as their separator can be told by them: quoted ones keep their
// quotes.
std::vector<std::string_view> Split(std::string_view record, char delimiter) {
  const auto separates = [delimiter](char c) {
    return delimiter == kRunOfBlanks ? c == ' ' || c == '\t' : c == delimiter;
  };
  std::vector<std::string_view> cells;
  bool quoted = false;
  size_t begin = 0;
  const auto end_cell = [&](size_t end) {
    const std::string_view cell = Trim(record.substr(begin, end - begin), kBlanks);
    if (delimiter != kRunOfBlanks || !cell.empty()) cells.push_back(cell);
    begin = end + 1;
  };
  for (size_t i = 0; i < record.size(); ++i) {
    if (record[i] == '"') quoted = !quoted;
    if (!quoted && separates(record[i])) end_cell(i);
  }
  end_cell(record.size());
  return cells;
}

// The first records that are not empty.
std::vector<std::string_view> FirstRecords(std::string_view text) {
  std::vector<std::string_view> records;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size() && records.size() < kRecordsLooked; ++i) {
    if (i < text.size() && text[i] == '"') quoted = !quoted;
    if (i < text.size() && (text[i] != '\n' || quoted)) continue;
    const std::string_view record = text.substr(begin, i - begin);
    if (!Trim(record, " \t\r\n").empty()) records.push_back(record);
    begin = i + 1;
  }
  return records;
}

bool IsNumber(std::string_view cell) {
  float ignored = 0;
  return ParseNumber(cell, &ignored);
}

// Whether all records have equally many cells, at least two; `fits`: what each cell must be.
template <typename Fits>
bool Separates(const std::vector<std::string_view>& records, char delimiter, const Fits& fits) {
  const size_t wanted = records.empty() ? 0 : Split(records[0], delimiter).size();
  return wanted > 1 && std::all_of(records.begin(), records.end(), [&](std::string_view record) {
           const std::vector<std::string_view> cells = Split(record, delimiter);
           return cells.size() == wanted && std::all_of(cells.begin(), cells.end(), fits);
         });
}

// Whether the record has a cell of several numbers with blanks between them.
bool HoldsNumbersInACell(std::string_view record, char delimiter) {
  const std::vector<std::string_view> cells = Split(record, delimiter);
  return std::any_of(cells.begin(), cells.end(), [](std::string_view cell) {
    const std::vector<std::string_view> parts = Split(cell, kRunOfBlanks);
    return parts.size() > 1 && std::all_of(parts.begin(), parts.end(), IsNumber);
  });
}

char FindDelimiter(std::string_view text) {
  const std::vector<std::string_view> records = FirstRecords(text);
  if (records.empty()) return ',';
  size_t counts[kDelimiters.size()] = {};
  for (size_t k = 0; k < kDelimiters.size(); ++k)
    counts[k] = Split(records[0], kDelimiters[k]).size() - 1;
  const auto most = static_cast<size_t>(std::max_element(std::begin(counts), std::end(counts)) -
                                        std::begin(counts));
  const char best = kDelimiters[most];
  const auto any_cell = [](std::string_view) { return true; };
  if (counts[most] == 0) return Separates(records, kRunOfBlanks, any_cell) ? kRunOfBlanks : best;
  if (best == '\t' && HoldsNumbersInACell(records[0], best)) {
    if (Separates(records, kRunOfBlanks, any_cell)) return kRunOfBlanks;
  }
  if (best != ',') return best;
  const auto has_no_other_comma = [](std::string_view cell) {
    return cell.starts_with('"') || cell.find(',') == std::string_view::npos ||
           HasDecimalComma(cell);
  };
  for (const char other : kDelimiters.substr(1)) {
    if (Separates(records, other, has_no_other_comma)) return other;
  }
  const auto is_decimal = [](std::string_view cell) {
    return IsNumber(cell) || HasDecimalComma(cell);
  };
  return Separates(records, kRunOfBlanks, is_decimal) ? kRunOfBlanks : best;
}

}  // namespace

char DelimiterOf(const std::string& asked, std::string_view text) {
  if (asked == "auto") return FindDelimiter(text);
  if (asked == "tab" || asked == "\\t") return '\t';
  if (asked == "blanks") return kRunOfBlanks;
  if (asked.size() == 1 && asked != "\"" && asked != "\n") return asked[0];
  Throw(ErrorKind::kConfig, "csv: delimiter = '{}': expected one character, tab, blanks or auto",
        asked);
}

}  // namespace mxtrain::io
