// SPDX-License-Identifier: Apache-2.0
#pragma once
// The structure of a table file: its columns and the lines of its rows. Private to io.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mxtrain::io {

bool HoldsBlanks(std::string_view cell);

struct Sheet {
  std::string file, delimiter;
  std::vector<std::string> header;  // empty: none
  size_t columns = 0;
  bool first_holds_blanks = false;      // the first cell
  std::vector<int64_t> lines, numbers;  // of each row: in the file, and among the rows, from 1

  // For messages: a column, a cell, and the header's first names.
  std::string ColumnName(size_t column) const;
  std::string Place(int64_t line, size_t column) const;
  std::string Names(size_t most) const;
  // Names that several columns have, one sentence; empty if there are none.
  std::string RepeatedNames() const;
  // Throws kData for a cell that float32 does not hold as a number, with what may be meant.
  // `commas`: decimals are written with commas.
  [[noreturn]] void ThrowNoNumber(int64_t line, size_t column, std::string_view cell,
                                  bool commas = false) const;
  bool Has(const std::string& wanted) const;
  // A column by its name or, without one, its number. Throws kConfig if there is none, kData if
  // there are two.
  size_t Find(const std::string& wanted) const;
};

}  // namespace mxtrain::io
