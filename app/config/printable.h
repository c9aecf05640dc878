// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text of files, command lines and folders that is shown to people.
#include <string>
#include <string_view>

namespace mxtrain::config {

// Text as one line that is safe on a terminal: control characters, bidirectional controls and
// invalid UTF-8 bytes are written as \n, \x1b, \u202e, \xff. Printable text stays as it is.
std::string Printable(std::string_view text);
// The same, but keeps line breaks and tabs.
std::string PrintableLines(std::string_view text);
// A word of a command line for a POSIX shell; quoted only if needed.
std::string QuoteShell(const std::string& text);

}  // namespace mxtrain::config
