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

namespace mxtrain::io {

class TableText {
 public:
  // Reads the whole file, plain or gzip. `delimiter`: one character, "tab", or "auto": the one of ,
  // ; tab | that occurs most often, outside quotes, in the first non-empty line; a comma if none
  // does. Throws kFileSystem, and kConfig for an invalid delimiter.
  TableText(const std::string& path, const std::string& delimiter);
  // The same for text in memory; `path` is for messages.
  TableText(std::string path, std::string text, const std::string& delimiter);

  const std::string& path() const { return path_; }
  std::string delimiter() const {
    return delimiter_ == '\t' ? "tab" : std::string("'") + delimiter_ + "'";
  }  // for messages

  // Visits every non-empty record, with the number of its first line, from 1. Cells are trimmed of
  // blanks outside quotes and valid as long as this object. Throws kData, with the line, for quotes
  // that are not closed, or closed inside a cell.
  using Visit = std::function<void(const std::vector<std::string_view>& cells, int64_t line)>;
  void ForEachRecord(const Visit& visit);

 private:
  std::string_view TakeQuoted(size_t* at, int64_t* line);
  std::string_view TakePlain(size_t* at) const;

  std::string path_, text_;
  char delimiter_;
  std::deque<std::string> unescaped_;  // cells with doubled quotes
};

}  // namespace mxtrain::io
