// SPDX-License-Identifier: Apache-2.0
#pragma once
// Splits lines of text into cells. Private to io.
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace mxtrain::io {

inline constexpr std::string_view kBlanks = " \t\r";  // around cells
// True if the whole text is a number; a leading '+' is allowed.
bool ParseNumber(std::string_view text, float* value);
bool ParseNumber(std::string_view text, double* value);
// The same of a number with a decimal comma, 3,14: points may separate thousands before it (1.200
// is 1200), and stand nowhere else.
bool ParseCommaNumber(std::string_view text, float* value);
bool ParseCommaNumber(std::string_view text, double* value);
// Whether a text is such a number, and has a comma: 3,14 or -1.234,5.
bool HasDecimalComma(std::string_view text);
// Whether a text that ParseNumber refuses is a number that float32 cannot hold.
bool IsOutOfRange(std::string_view text);
// Trimmed cells; views into `line`.
std::vector<std::string_view> SplitCells(std::string_view line, char separator);
// Visits every non-empty line, trimmed, with its number from 1. A byte order mark is skipped.
void ForEachLine(std::string_view text,
                 const std::function<void(std::string_view line, int64_t number)>& visit);

}  // namespace mxtrain::io
