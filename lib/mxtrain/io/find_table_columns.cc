// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/find_table_columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <string_view>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/header_line.h"
#include "mxtrain/io/internal/number_like.h"
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

// What stands for a missing cell in tables of words and numbers, in small letters.
bool IsSignOfMissing(std::string_view word) {
  constexpr std::array<std::string_view, 9> kSigns = {"?",      "-",   "--",      ".",   "#n/a",
                                                      "(null)", "\\n", "missing", "n.a."};
  return std::ranges::count(kSigns, Lower(word)) > 0;
}

double SkewnessOf(const std::vector<double>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
  double squares = 0, cubes = 0;
  for (const double number : numbers) {
    const double from_mean = number - mean;
    squares += from_mean * from_mean;
    cubes += from_mean * from_mean * from_mean;
  }
  return squares > 0 ? cubes / count / std::pow(squares / count, 1.5) : 0;
}

class ColumnLook {
 public:
  ColumnLook(std::string name, bool commas) : commas_(commas) {
    column_.name = std::move(name);
    column_.whole = column_.rising = true;
  }
  void Add(std::string_view cell) {
    cell = Trim(cell, kBlanksOfCell);
    double number = 0;
    if (IsMissing(cell)) {
      ++column_.missing;
    } else if (!(commas_ ? ParseCommaNumber(cell, &number) : ParseNumber(cell, &number))) {
      if (words_[cell]++ == 0 && first_word_.empty()) first_word_ = cell;
    } else {
      ++different_[cell];
      column_.decimal_points +=
          cell.find('.') != std::string_view::npos && !HasThousandPoints(cell) ? 1 : 0;
      column_.reads_commas = column_.reads_commas || HasDecimalComma(cell);
      column_.whole = column_.whole && number == std::floor(number);
      column_.rising = column_.rising && (numbers_.empty() || number > numbers_.back());
      numbers_.push_back(number);
    }
  }
  TableColumn Take() {
    TakeMissingWords();
    column_.numbers = std::ssize(numbers_);
    column_.distinct = std::ssize(different_) + std::ssize(words_);
    for (const auto& [word, count] : words_) {
      column_.words += count;
      if (HasDecimalComma(word)) column_.decimal_commas += count;
      if (HasThousandPoints(word)) column_.thousand_points += count;
    }
    if (column_.words > 0)
      column_.first_word = words_.contains(first_word_) ? first_word_ : words_.begin()->first;
    if (column_.distinct <= TableColumn::kFewCells) {
      column_.few_cells = {words_.begin(), words_.end()};
      column_.few_cells.insert(column_.few_cells.end(), different_.begin(), different_.end());
      std::ranges::stable_sort(column_.few_cells.begin() + std::ssize(words_),
                               column_.few_cells.end(), {},
                               [](const auto& cell) { return cell.first.size(); });  // 10 after 9
    }
    column_.number_like = NumberLikeWords();
    if (!numbers_.empty()) DescribeNumbers();
    return std::move(column_);
  }

 private:
  // Of decimal commas alone, MixesDecimalCommas tells.
  std::string NumberLikeWords() const {
    std::string text;
    if (column_.words == column_.decimal_commas) return text;
    for (const auto& [word, count] : words_) {
      std::optional<NumberLike> like = LooksLikeNumber(word);
      if (!like) return "";
      const bool first = word == first_word_ || (text.empty() && !HasDecimalComma(word));
      if (commas_) std::ranges::replace(like->plain, '.', ',');
      if (first) text = format("{}, such as '{}'; write them as {}", like->with, word, like->plain);
    }
    return text;
  }
  void TakeMissingWords() {
    std::vector<std::string_view> missing;
    for (const auto& [word, count] : words_) {
      if (IsSignOfMissing(word)) missing.push_back(word);
    }
    const auto others = words_.size() - missing.size();
    for (const auto& [word, count] : words_) {
      if (others == 1 && !IsSignOfMissing(word) && !HasDecimalComma(word) && count > 1 &&
          count < std::ssize(numbers_))
        missing.push_back(word);
    }
    for (const std::string_view word : missing) {
      column_.missing += words_[word];
      column_.missing_words.emplace_back(word);
      words_.erase(word);
    }
  }
  void DescribeNumbers() {
    column_.least = *std::ranges::min_element(numbers_);
    column_.most = *std::ranges::max_element(numbers_);
    column_.skewness = SkewnessOf(numbers_);
    if (column_.least <= 0) return;
    for (double& number : numbers_) number = std::log(number);
    column_.log_skewness = SkewnessOf(numbers_);
  }

  const bool commas_;  // numbers have decimal commas
  TableColumn column_;
  std::map<std::string_view, int64_t> different_;  // numbers
  std::map<std::string_view, int64_t> words_;
  std::string_view first_word_;
  std::vector<double> numbers_;
};

// The first row holds the names.
std::vector<TableColumn> LookAtColumns(const std::vector<std::vector<std::string_view>>& rows,
                                       bool commas) {
  std::vector<TableColumn> columns;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    ColumnLook look(std::string(Trim(rows[0][c], kBlanksOfCell)), commas);
    for (size_t row = 1; row < rows.size(); ++row) look.Add(rows[row][c]);
    columns.push_back(look.Take());
  }
  return columns;
}

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
  const std::vector<TableColumn> columns = LookAtColumns(rows, /*commas=*/false);
  const bool commas =
      std::ranges::any_of(columns,
                          [](const TableColumn& column) {
                            return column.decimal_commas > 0 &&
                                   column.decimal_commas + column.thousand_points == column.words;
                          }) &&
      std::ranges::all_of(columns,
                          [](const TableColumn& column) { return column.decimal_points == 0; });
  return commas ? LookAtColumns(rows, commas) : columns;
}

std::string IndicatedColumn(std::string_view name) {
  constexpr std::string_view kBegin = "missing(";
  if (!name.starts_with(kBegin) || !name.ends_with(')')) return "";
  return std::string(name.substr(kBegin.size(), name.size() - kBegin.size() - 1));
}

}  // namespace mxtrain::io
