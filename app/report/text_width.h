// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text for people in lines that fit a terminal.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mxtrain::report {

inline constexpr size_t kUsualColumns = 80;

// COLUMNS, else the width of the terminal that the descriptor is; nothing for files and pipes.
std::optional<size_t> ColumnsOf(int descriptor);
// For help on stdout: ColumnsOf, else kUsualColumns.
size_t HelpColumns();

// As a terminal shows a name.
size_t ColumnsOfName(std::string_view name);
// A name of at most `most` columns (2 or more), of which a Chinese character or an emoji takes two:
// a longer one has "…" for its middle.
std::string NameInColumns(std::string_view name, size_t most);

// Breaks longer lines at blanks. What continues a line stands below the text of its last column
// ("  -q,--quiet  no messages"), or is indented by four more; a column that leaves no room begins
// below its line. Commands ("  mxtrain ...") continue with a backslash, comments behind them ("
// mxtrain nets  # ...") with "# ". A word that is longer than a line stays whole, and so do lines
// of code: those indented by exactly four, and others that are no commands.
std::string Fitted(std::string_view text, size_t columns);

// The same, of text in paragraphs: lines without indentation are joined first, up to a blank or an
// indented one. At most 110 columns.
std::string Refilled(std::string_view text, size_t columns);

}  // namespace mxtrain::report
