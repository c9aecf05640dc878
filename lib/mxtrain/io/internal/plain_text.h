// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text files as other programs write them. Private to io.
#include <string>

namespace mxtrain::io {

// The bytes of a text file as UTF-8 whose lines end in LF or CR LF: UTF-16 (by its byte order mark,
// or by the zero bytes of plain letters) is converted, a byte order mark and DOS's end of file
// (Ctrl-Z) are removed, and where CR alone ends lines, as on old Macs, LF does. Text in any other
// encoding is returned as it is. Throws kData, naming `path`, for bytes that are no text: a
// workbook, an archive, a database, a web page, UTF-32.
std::string PlainText(std::string bytes, const std::string& path);

}  // namespace mxtrain::io
