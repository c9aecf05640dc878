// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/find_table_columns.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <string_view>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/header_line.h"
#include "mxtrain/io/internal/table_text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr std::string_view kBlanksOfCell = " \t\r\n";

bool NamesTable(const std::string& path) {
  std::filesystem::path name(Lower(path));
  if (name.extension() == ".gz") name.replace_extension();
  const std::string ending = name.extension().string();
  return ending == ".csv" || ending == ".tsv" || ending == ".tab" || ending == ".txt" ||
         ending == ".data";
}

class ColumnLook {
 public:
  explicit ColumnLook(std::string name) {
    column_.name = std::move(name);
    column_.whole = column_.rising = true;
  }
  void Add(std::string_view cell) {
    cell = Trim(cell, kBlanksOfCell);
    if (IsMissing(cell)) {
      ++column_.missing;
      return;
    }
    values_.insert(cell);
    double number = 0;
    if (!ParseNumber(cell, &number)) {
      if (column_.words++ == 0) column_.first_word = cell;
      return;
    }
    ++column_.numbers;
    column_.whole = column_.whole && number == std::floor(number);
    column_.rising = column_.rising && number > last_;
    last_ = number;
    column_.least = column_.numbers == 1 ? number : std::min(column_.least, number);
    column_.most = column_.numbers == 1 ? number : std::max(column_.most, number);
  }
  TableColumn Take() {
    column_.distinct = std::ssize(values_);
    return std::move(column_);
  }

 private:
  TableColumn column_;
  std::set<std::string_view> values_;
  double last_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

std::optional<std::vector<TableColumn>> FindTableColumns(const std::string& path) {
  if (!NamesTable(path)) return std::nullopt;
  TableText text(path, "auto");
  std::vector<std::vector<std::string_view>> rows;
  text.ForEachRecord([&](const std::vector<std::string_view>& cells, int64_t line) {
    if (!rows.empty() && cells.size() != rows[0].size())
      Throw(ErrorKind::kData, "{}:{}: {}, but the lines before have {}", path, line,
            Counted(cells.size(), "column"), rows[0].size());
    rows.push_back(cells);
  });
  if (rows.size() < 2) return std::nullopt;
  const std::vector<std::vector<std::string_view>> judged(
      rows.begin(),
      rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), kRecordsJudged)));
  double number = 0;
  const bool names = std::ranges::none_of(rows[0], [&number](std::string_view cell) {
    return Trim(cell, kBlanksOfCell).empty() || ParseNumber(Trim(cell, kBlanksOfCell), &number);
  });
  if (!names) return std::nullopt;
  bool found_below = false;  // words of the first line, as if it were a row
  for (size_t c = 0; c < rows[0].size() && !JudgeFirstLine(judged).header; ++c)
    found_below = found_below || std::any_of(rows.begin() + 1, rows.end(),
                                             [&](const auto& row) { return row[c] == rows[0][c]; });
  if (found_below) return std::nullopt;
  std::vector<TableColumn> columns;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    ColumnLook look{std::string(Trim(rows[0][c], kBlanksOfCell))};
    for (size_t row = 1; row < rows.size(); ++row) look.Add(rows[row][c]);
    columns.push_back(look.Take());
  }
  return columns;
}

}  // namespace mxtrain::io
