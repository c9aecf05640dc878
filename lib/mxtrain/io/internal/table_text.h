// SPDX-License-Identifier: Apache-2.0
#pragma once
// Delimited text files, one record per line (RFC 4180): quoted cells may contain separators, line
// ends and doubled quotes. Private to io.
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/io/internal/table_delimiter.h"

namespace mxtrain::io {

class TableText {
 public:
  // Reads the whole file, plain or gzip, in UTF-8 or UTF-16 (plain_text.h). `delimiter`: as
  // DelimiterOf takes it (table_delimiter.h); of "auto" that of Excel's first line "sep=;" if there
  // is one. Throws kFileSystem, kData for a file that is no text, and kConfig for an invalid
  // delimiter.
  TableText(const std::string& path, const std::string& delimiter);
  // The same for text in memory; `path` is for messages.
  TableText(std::string path, std::string text, const std::string& delimiter);

  const std::string& path() const { return path_; }
  std::string delimiter() const {
    return delimiter_ == '\t'           ? "tab"
           : delimiter_ == kRunOfBlanks ? "blanks"
                                        : std::string("'") + delimiter_ + "'";
  }  // for messages

  // Visits every non-empty record, with the number of its first line, from 1. Cells are trimmed of
  // blanks outside quotes and valid as long as this object. Throws kData, with the line, for quotes
  // that are not closed, or closed inside a cell.
  using Visit = std::function<void(const std::vector<std::string_view>& cells, int64_t line)>;
  void ForEachRecord(const Visit& visit);

 private:
  bool Separates(char c) const {
    return c == delimiter_ || (c == '\t' && delimiter_ == kRunOfBlanks);
  }
  bool IsPadding(char c) const {
    return (c == ' ' || c == '\t') && (c != delimiter_ || delimiter_ == kRunOfBlanks);
  }
  void PassBlanks(size_t* at) const;
  std::string_view TakeQuoted(size_t* at, int64_t* line);
  std::string_view TakePlain(size_t* at) const;

  std::string path_, text_;
  char delimiter_;
  std::deque<std::string> unescaped_;  // cells with doubled quotes
};

}  // namespace mxtrain::io
