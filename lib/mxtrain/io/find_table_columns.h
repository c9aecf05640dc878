// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the columns of a table of numbers and words hold, for a configuration that is written for
// it.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

// A column as far as its cells tell it. Empty cells and NA, nan, null, n/a are missing; so are
// signs such as ?, and among numbers the one word that there is: `missing_words`.
struct TableColumn {
  std::string name;
  int64_t numbers = 0, words = 0, missing = 0;  // cells
  int64_t distinct = 0;                         // different cells, without missing ones
  // If at most kFewCells differ: these cells, and how often each is there. Words before numbers.
  static constexpr int64_t kFewCells = 12;
  std::vector<std::pair<std::string, int64_t>> few_cells = {};
  bool whole = false;          // the numbers have no fractions
  bool rising = false;         // each number is above the one before
  double least = 0, most = 0;  // of the numbers
  std::string first_word;
  std::vector<std::string> missing_words = {};
  // Of the numbers: E[(x - mean)^3] / std^3, and that of their logarithms if all are above 0.
  double skewness = 0;
  std::optional<double> log_skewness = std::nullopt;

  // Of the words those that are numbers with a decimal comma: 4404,88 or -1.234,5. If all words of
  // a column are, beside 1.234.567, and all numbers of the table with points are like 1.234, they
  // are numbers, and such points separate thousands: reads_commas.
  int64_t decimal_commas = 0, thousand_points = 0;
  bool reads_commas = false;
  int64_t decimal_points = 0;  // numbers with one that is none of thousands

  // Cells that are no numbers here, and are numbers to a reader: "blanks between thousands, such as
  // '24 283,48'; write them as 24283.48" of the first one, if all words are; "" otherwise.
  std::string number_like = {};

  int64_t rows() const { return numbers + words + missing; }
  bool holds_words() const { return words > numbers; }
};

// The columns of a table whose first line names them (.csv, .tsv, .tab, .txt, .data, perhaps with
// .gz); nothing for another file, or if its first line is none of names. Throws kFileSystem for a
// file that cannot be read, and kData, with the line, for one that is damaged.
MXTRAIN_API std::optional<std::vector<TableColumn>> FindTableColumns(const std::string& path);

// The column whose missing cells "missing(COLUMN)" tells of; "" for another name.
MXTRAIN_API std::string IndicatedColumn(std::string_view name);

}  // namespace mxtrain::io
