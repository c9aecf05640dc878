// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the first record of a table names its columns. Private to io.
#include <string_view>
#include <vector>

namespace mxtrain::io {

inline constexpr size_t kRecordsJudged = 64;

struct FirstLine {
  bool header = false;
  bool doubtful = false;  // the contents allow the other answer, too
};

// Judged by the first kRecordsJudged records, as many as there are, at least one. A column tells
// something if its first cell that is not missing, below the first record, is a number or the name
// of a file (x.png):
// - the first record is the header if it has a word above such a cell, and no cell of the same kind
//   as the one below; it is an example if it has such a cell. With both it is an example, and
//   doubtful. If no column tells anything, it is an example.
// - Numbers that count from 0 (0,1,2, as data frames name columns) are a header, a doubtful
//   one, unless the record below counts too; two of them only above fractions or words.
// - The only record is the header if it holds words alone.
FirstLine JudgeFirstLine(const std::vector<std::vector<std::string_view>>& records);

// Whether a cell stands for a missing value: "", nan, NA, n/a, null, in any case.
bool IsMissing(std::string_view cell);

}  // namespace mxtrain::io
