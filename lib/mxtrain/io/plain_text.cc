// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/plain_text.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::io {
namespace {

using namespace std::string_view_literals;

constexpr const char* kSaveAsCsv = "save the sheet as CSV";
constexpr const char* kConvert = "convert it to CSV";
constexpr const char* kUnpack = "unpack it, and give the file in it";

// Files that are taken for tables, by their first bytes.
struct Signature {
  std::string_view begin;
  const char* what;
  const char* remedy;
};
constexpr Signature kSignatures[] = {
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, "a workbook of Excel (.xls)", kSaveAsCsv},
    {"PAR1"sv, "a Parquet file", kConvert},
    {"ARROW1"sv, "an Arrow file", kConvert},
    {"FEA1"sv, "a Feather file", kConvert},
    {"SQLite format 3\0"sv, "a database of SQLite", kConvert},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", kConvert},
    {"\x93NUMPY"sv, "an array of NumPy", kConvert},
    {"%PDF-"sv, "a PDF", kConvert},
    {"BZh"sv, "compressed by bzip2", kUnpack},
    {"\xfd"
     "7zXZ\0"sv,
     "compressed by xz", kUnpack},
    {"\x28\xb5\x2f\xfd"sv, "compressed by zstd", kUnpack},
    {"7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive", kUnpack},
    {"Rar!"sv, "a RAR archive", kUnpack},
    {"\xff\xfe\0\0"sv, "text in UTF-32", "save it as UTF-8"},
    {"\0\0\xfe\xff"sv, "text in UTF-32", "save it as UTF-8"},
};

// A zip file is an archive, or a document of which it holds the parts.
Signature OfZip(std::string_view bytes) {
  constexpr size_t kBegin = 4096;  // the first parts
  const std::string_view begin = bytes.substr(0, kBegin);
  const auto holds = [begin](std::string_view part) {
    return begin.find(part) != std::string_view::npos;
  };
  if (holds("opendocument.spreadsheet")) return {"", "a spreadsheet (.ods)", kSaveAsCsv};
  if (holds("xl/") || holds("[Content_Types].xml"))
    return {"", "a workbook of Excel (.xlsx)", kSaveAsCsv};
  return {"", "a zip archive", kUnpack};
}

std::optional<Signature> NoText(std::string_view bytes) {
  if (bytes.starts_with("PK\x03\x04")) return OfZip(bytes);
  for (const Signature& known : kSignatures) {
    if (bytes.starts_with(known.begin)) return known;
  }
  const std::string begin = Lower(Trim(bytes.substr(0, 64), " \t\r\n"));
  if (begin.starts_with("<!doctype html") || begin.starts_with("<html"))
    return Signature{"", "a web page", "download the file that it shows"};
  return std::nullopt;
}

void AppendUtf8(uint32_t code, std::string* text) {
  const auto add = [text](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
    }
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

// A half of a pair without the other becomes U+FFFD; an odd byte at the end is dropped.
std::string FromUtf16(std::string_view bytes, bool little) {
  std::string text;
  text.reserve(bytes.size() / 2);
  const auto unit = [&](size_t at) -> uint32_t {
    const auto first = static_cast<uint8_t>(bytes[at]),
               second = static_cast<uint8_t>(bytes[at + 1]);
    return little ? first | second << 8 : first << 8 | second;
  };
  for (size_t at = 0; at + 1 < bytes.size(); at += 2) {
    uint32_t code = unit(at);
    if (code >= 0xd800 && code < 0xe000) {
      const uint32_t low = code < 0xdc00 && at + 3 < bytes.size() ? unit(at + 2) : 0;
      const bool pair = low >= 0xdc00 && low < 0xe000;
      code = pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
      if (pair) at += 2;
    }
    AppendUtf8(code, &text);
  }
  return text;
}

// Whether every second byte of the beginning is zero and the others are not: letters in UTF-16.
bool BeginsWithZeros(std::string_view bytes, size_t phase) {
  constexpr size_t kLooked = 32;
  const size_t looked = std::min(kLooked, bytes.size() / 2 * 2);
  for (size_t i = 0; i < looked; ++i) {
    if ((bytes[i] == '\0') != (i % 2 == phase)) return false;
  }
  return looked >= 4;
}

void EndLinesByFeeds(std::string* text) {
  if (text->find('\r') == std::string::npos) return;
  const auto is_alone = [text](size_t i) {
    return (*text)[i] == '\r' && (i + 1 == text->size() || (*text)[i + 1] != '\n');
  };
  size_t alone = 0;
  for (size_t i = 0; i < text->size(); ++i) alone += is_alone(i);
  if (alone <= static_cast<size_t>(std::count(text->begin(), text->end(), '\n'))) return;
  for (size_t i = 0; i < text->size(); ++i) {
    if (is_alone(i)) (*text)[i] = '\n';
  }
}

}  // namespace

std::string PlainText(std::string bytes, const std::string& path) {
  if (const auto found = NoText(bytes))
    Throw(ErrorKind::kData, "{} is {}, not a text file; {}", path, found->what, found->remedy);
  std::string text;
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) {
    text = FromUtf16(std::string_view(bytes).substr(2), bytes[0] == '\xff');
  } else if (BeginsWithZeros(bytes, 1) || BeginsWithZeros(bytes, 0)) {
    text = FromUtf16(bytes, bytes[1] == '\0');
  } else {
    text = std::move(bytes);
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  }
  if (text.ends_with('\x1a')) text.pop_back();
  EndLinesByFeeds(&text);
  return text;
}

}  // namespace mxtrain::io
