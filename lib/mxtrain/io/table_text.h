#pragma once
// Text files of cells, a record per line (RFC 4180): cells in double quotes may hold separators, line ends and doubled quotes. Private to io.
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mxtrain::io {

class TableText {
 public:
  // Reads the whole file, plain or gzip. `delimiter`: one character, "tab", or "auto": that of , ; tab | which the first line that is not empty
  // holds most often outside quotes; a comma where it holds none. Throws kFileSystem, and kConfig for another delimiter.
  TableText(const std::string& path, const std::string& delimiter);

  const std::string& path() const { return path_; }
  std::string delimiter() const { return delimiter_ == '\t' ? "tab" : std::string("'") + delimiter_ + "'"; }  // for messages

  // Every line that is not empty, with the number of the line on which it begins, from 1. Cells are trimmed of blanks outside quotes, and live
  // as long as this object. Throws kData, with the line, for quotes that do not end, or end inside a cell.
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
