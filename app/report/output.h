#pragma once
// Results as text, the same for every command.
//
// Names of files are bytes. Tables and CSV hold them as they are, so that another program finds the file; JSON is UTF-8, and holds U+FFFD
// for each byte that is not.
#include <string>

#include "mxtrain/base/json.h"

namespace mxtrain::report {

std::string JsonText(const Json& value, int indent = -1);  // below 0: in one line
// A field of CSV (RFC 4180).
std::string QuoteCsv(const std::string& text);
// A word of a command line as a POSIX shell takes it; quoted only where that is needed.
std::string QuoteShell(const std::string& text);
// "NAME: REASON"; the reason alone where it says the name itself.
std::string NameAndReason(const std::string& name, const std::string& reason);
// Ends what was written to stdout. Throws kFileSystem where it did not arrive: a full disk, a closed descriptor.
void FlushResults();

}  // namespace mxtrain::report
