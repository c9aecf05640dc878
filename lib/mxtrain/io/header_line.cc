// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/header_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

using Cells = std::vector<std::string_view>;

enum class Kind { kMissing, kNumber, kFile, kWord };

// "photos/x.png": an ending of two to five letters and digits, with a letter first.
bool IsFileName(std::string_view cell) {
  const size_t point = cell.rfind('.');
  if (point == std::string_view::npos || point == 0) return false;
  const std::string ending = Lower(cell.substr(point + 1));
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return ending.size() >= 2 && ending.size() <= 5 && is_letter(ending[0]) &&
         std::all_of(ending.begin(), ending.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

Kind KindOf(std::string_view cell) {
  cell = Trim(cell, kBlanks);
  float ignored = 0;
  if (IsMissing(cell)) return Kind::kMissing;
  if (ParseNumber(cell, &ignored) || ParseCommaNumber(cell, &ignored) || IsOutOfRange(cell))
    return Kind::kNumber;
  return IsFileName(cell) ? Kind::kFile : Kind::kWord;
}

// Of the first cell of a column, below the first record, that is not missing.
Kind KindBelow(const std::vector<Cells>& records, size_t column) {
  for (size_t row = 1; row < records.size(); ++row) {
    if (column >= records[row].size()) continue;
    if (const Kind kind = KindOf(records[row][column]); kind != Kind::kMissing) return kind;
  }
  return Kind::kMissing;
}

std::optional<int64_t> WholeNumber(std::string_view cell) {
  cell = Trim(cell, kBlanks);
  int64_t number = 0;
  const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  const bool whole = status == std::errc() && end == cell.data() + cell.size();
  return whole ? std::optional(number) : std::nullopt;
}

// The count of cells if they are numbers one after the other, perhaps after an empty cell or a word
// (the index of a data frame); 0 if they are not. *first: the first number.
size_t CountOfRun(const Cells& cells, int64_t* first) {
  const size_t begin = !cells.empty() && !WholeNumber(cells[0]) ? 1 : 0;
  for (size_t i = begin; i < cells.size(); ++i) {
    const std::optional<int64_t> number = WholeNumber(cells[i]);
    if (i == begin && number) *first = *number;
    if (!number || *number != *first + static_cast<int64_t>(i - begin)) return 0;
  }
  return cells.size() - begin;
}

// Whether a column of numbers counted in the header has only fractions, or words, below it.
bool HasColumnOfOthers(const std::vector<Cells>& records) {
  for (size_t column = 0; column < records[0].size(); ++column) {
    if (!WholeNumber(records[0][column])) continue;
    size_t others = 0;
    const auto is_other = [&](const Cells& cells) {
      if (column >= cells.size() || KindOf(cells[column]) == Kind::kMissing) return true;
      ++others;
      return !WholeNumber(cells[column]);
    };
    if (std::all_of(records.begin() + 1, records.end(), is_other) && others > 0) return true;
  }
  return false;
}

bool CountsColumns(const std::vector<Cells>& records) {
  int64_t first = 0, first_below = 0;
  const size_t count = CountOfRun(records[0], &first);
  if (count < 2 || first != 0 || records.size() < 2) return false;
  return HasColumnOfOthers(records) || (count > 2 && CountOfRun(records[1], &first_below) == 0);
}

}  // namespace

bool IsMissing(std::string_view cell) {
  static constexpr std::array<std::string_view, 5> kWords = {"", "nan", "na", "n/a", "null"};
  if (cell.size() > 4) return false;
  return std::find(kWords.begin(), kWords.end(), Lower(cell)) != kWords.end();
}

FirstLine JudgeFirstLine(const std::vector<Cells>& records) {
  if (records.size() == 1) {
    const auto is_word = [](std::string_view cell) {
      return KindOf(cell) == Kind::kWord || KindOf(cell) == Kind::kMissing;
    };
    return {.header = std::all_of(records[0].begin(), records[0].end(), is_word)};
  }
  if (CountsColumns(records)) return {.header = true, .doubtful = true};
  size_t words = 0, alike = 0;
  for (size_t column = 0; column < records[0].size(); ++column) {
    const Kind above = KindOf(records[0][column]), below = KindBelow(records, column);
    if (below != Kind::kNumber && below != Kind::kFile) continue;
    words += above == Kind::kWord || (above == Kind::kFile && below == Kind::kNumber);
    alike += above == below;
  }
  return {.header = words > 0 && alike == 0, .doubtful = words > 0 && alike > 0};
}

}  // namespace mxtrain::io
