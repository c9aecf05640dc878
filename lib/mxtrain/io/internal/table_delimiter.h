// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the cells of a table are separated. Private to io.
#include <string>
#include <string_view>

namespace mxtrain::io {

// Stands for any number of blanks: spaces and tabs.
inline constexpr char kRunOfBlanks = ' ';

// The separator of the cells of a text. `asked`: one character (a space: blanks, also several),
// "tab", "blanks", or "auto": judged by the first records. That is the one of , ; tab | that occurs
// most often, outside quotes, in the first of them, but
// - where every comma is that of a decimal (1,5), another one that all records have, and
// - where blanks separate equally many cells in all records, blanks: if there is none of these
// four,
//   or only tabs or decimal commas, with several numbers between two of them.
// A comma if there is none. Throws kConfig for any other `asked`.
char DelimiterOf(const std::string& asked, std::string_view text);

}  // namespace mxtrain::io
