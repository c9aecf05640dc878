// SPDX-License-Identifier: Apache-2.0
#pragma once
// Results as text, the same for every command.
//
// Names of files and classes are arbitrary bytes. CSV and lists contain them unchanged, so that
// other programs find the files; text for people contains them printable; JSON is UTF-8, with
// U+FFFD for each invalid byte. So are texts that were learnt from, which no program looks for.
#include <string>
#include <string_view>

#include "app/config/printable.h"
#include "mxtrain/base/json.h"

namespace mxtrain::report {

std::string JsonText(const Json& value, int indent = -1);  // below 0: in one line
using config::Printable;
using config::PrintableLines;
using config::QuoteShell;
// A message for people: PrintableLines, in lines of at most 2000 bytes.
std::string MessageText(std::string_view text);
// A name in a list on stdout: printable on a terminal, its bytes otherwise.
std::string ListedName(const std::string& name);
// With U+FFFD for what is not UTF-8.
std::string ValidUtf8(const std::string& text);
// A text field of CSV (RFC 4180). One that a spreadsheet would treat as a formula (it begins with =
// + - @, a tab or a carriage return and is not a number) gets an apostrophe in front.
std::string QuoteCsv(const std::string& text);
// "NAME: REASON"; the reason alone if it contains the name.
std::string NameAndReason(const std::string& name, const std::string& reason);
std::string FormatDuration(double seconds);  // "1:02:03", "2:03"
std::string FormatNumber(double value);      // four significant digits
// Flushes stdout. Throws kFileSystem if writing failed: a full disk, a closed descriptor.
void FlushResults();

}  // namespace mxtrain::report
