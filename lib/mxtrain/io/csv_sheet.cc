// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/csv_sheet.h"

#include <algorithm>
#include <charconv>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr size_t kNamesListed = 50;  // of columns, in a message
constexpr const char* kSeparatedByBlanks =
    "; if blanks separate the columns, set delimiter: blanks, and give every line as many cells";
constexpr const char* kHasComma =
    "; set decimal: ',' for a table with decimal commas; decimal: '.' if they are words";
constexpr const char* kHasPoint =
    "; it has a decimal point, and decimal: ',' reads commas: write all numbers alike";
constexpr const char* kNamesColumns =
    "; if this line holds the names of the columns, give the columns by these names";

}  // namespace

bool HoldsBlanks(std::string_view cell) {
  return cell.find_first_of(" \t") != std::string_view::npos;
}

std::string Sheet::ColumnName(size_t column) const {
  return column < header.size() ? format("column '{}'", Shortened(header[column]))
                                : format("column {} (counted from 0)", column);
}

std::string Sheet::Place(int64_t line, size_t column) const {
  return format("{}:{}: {}", file, line, ColumnName(column));
}

void Sheet::ThrowNoNumber(int64_t line, size_t column, std::string_view cell, bool commas) const {
  float ignored = 0;
  if (IsOutOfRange(cell)) {
    const bool small =
        cell.find("e-") != std::string_view::npos || cell.find("E-") != std::string_view::npos;
    Throw(ErrorKind::kData, "{}: '{}' is too {} for float32; {}", Place(line, column),
          Shortened(cell), small ? "small" : "large", small ? "write 0" : "scale the column");
  }
  const char* advice = commas && ParseNumber(cell, &ignored) ? kHasPoint
                       : !commas && HasDecimalComma(cell)    ? kHasComma
                       : columns == 1 && HoldsBlanks(cell)   ? kSeparatedByBlanks
                       : header.empty() && line == lines[0]  ? kNamesColumns
                                                             : "";
  Throw(ErrorKind::kData, "{}: '{}' is not a number{}", Place(line, column), Shortened(cell),
        advice);
}

std::string Sheet::Names(size_t most) const {
  std::vector<std::string> names;
  for (const std::string& name : header) names.push_back(Shortened(name));
  return FirstOf(std::move(names), most);
}

std::string Sheet::RepeatedNames() const {
  std::vector<std::string> names = header, repeated;
  std::sort(names.begin(), names.end());
  for (size_t i = 1; i < names.size(); ++i) {
    const bool known = !repeated.empty() && repeated.back() == names[i];
    if (names[i] == names[i - 1] && !names[i].empty() && !known) repeated.push_back(names[i]);
  }
  if (repeated.empty()) return "";
  for (std::string& name : repeated) name = Shortened(name);
  return format("{}: several columns have the same name: {}", file, FirstOf(repeated, 8));
}

bool Sheet::Has(const std::string& wanted) const {
  size_t number = 0;
  const auto [end, status] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  const bool is_number = status == std::errc() && end == wanted.data() + wanted.size();
  return std::ranges::count(header, wanted) > 0 || (is_number && number < columns);
}

size_t Sheet::Find(const std::string& wanted) const {
  const auto named = std::find(header.begin(), header.end(), wanted);
  if (named != header.end()) {
    const auto again = std::find(named + 1, header.end(), wanted);
    if (again != header.end()) {
      Throw(ErrorKind::kData,
            "csv: {} has two columns '{}': {} and {}, counted from 0; rename one of them in the "
            "first line",
            file, wanted, named - header.begin(), again - header.begin());
    }
    return static_cast<size_t>(named - header.begin());
  }
  size_t number = 0;
  const auto [end, status] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (status == std::errc() && end == wanted.data() + wanted.size() && number < columns)
    return number;
  const std::string one = columns == 1
                              ? format("; its cells are taken to be separated by {}{}", delimiter,
                                       first_holds_blanks ? kSeparatedByBlanks : "")
                              : "";
  const bool is_text = std::all_of(header.begin(), header.end(),
                                   [](const std::string& name) { return IsUtf8(name); });
  Throw(
      ErrorKind::kConfig, "csv: {} has no column '{}'; it has {}, {}{}{}", file, wanted,
      Counted(columns, "column"),
      header.empty() ? "without names: give their numbers, from 0" : "named " + Names(kNamesListed),
      DidYouMean(wanted, header), is_text ? one : "; the file is not UTF-8: save it as UTF-8");
}

}  // namespace mxtrain::io
