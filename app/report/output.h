#pragma once
// Results as text, the same for every command.
//
// Names of files and classes are bytes that others chose. CSV and lists of names hold them as they are, so that another program finds the file;
// what a person reads holds them printable; JSON is UTF-8, and holds U+FFFD for each byte that is not.
#include <string>
#include <string_view>

#include "mxtrain/base/json.h"

namespace mxtrain::report {

std::string JsonText(const Json& value, int indent = -1);  // below 0: in one line
// Text of one line that a terminal shows and does not obey: control characters, those that turn the direction of writing, and bytes that are no
// UTF-8 stand as \n, \x1b, \u202e, \xff.
std::string Printable(std::string_view text);
// The same over several lines: line breaks and tabs stay.
std::string PrintableLines(std::string_view text);
// A name in a list on stdout: printable on a terminal, its bytes for a program that reads them.
std::string ListedName(const std::string& name);
// A field of CSV (RFC 4180) that holds text. One that a spreadsheet would take for a formula (it begins with = + - @, a tab or a carriage return
// and is no number) has an apostrophe before it.
std::string QuoteCsv(const std::string& text);
// A word of a command line as a POSIX shell takes it; quoted only where that is needed.
std::string QuoteShell(const std::string& text);
// "NAME: REASON"; the reason alone where it says the name itself.
std::string NameAndReason(const std::string& name, const std::string& reason);
// Ends what was written to stdout. Throws kFileSystem where it did not arrive: a full disk, a closed descriptor.
void FlushResults();

}  // namespace mxtrain::report
