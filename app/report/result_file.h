#pragma once
// Where results go that come row by row: stdout, or a file that is seen whole or not at all. Such a file is written beside its name
// (base/file.h), which it gets at the end; what is there and no regular file (a pipe, /dev/stdout) is written as it stands.
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "mxtrain/base/file.h"

namespace mxtrain::report {

class ResultFile {
 public:
  explicit ResultFile(std::string path);  // "": stdout. Throws kFileSystem, with the reason
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  // Both throw kFileSystem, with the reason, where something did not arrive.
  void Write(std::string_view bytes);
  void Finish();  // without it there will be no file

 private:
  bool ToStdout() const { return path_.empty(); }
  void Check(bool good) const;

  const std::string path_;
  std::optional<FileWriter> file_;  // of a file; else `stream_`
  std::ofstream special_;
  std::ostream& stream_;
};

}  // namespace mxtrain::report
