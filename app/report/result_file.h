// SPDX-License-Identifier: Apache-2.0
#pragma once
// Output for results that are produced row by row: stdout, or a file that appears only when
// complete. The file is written under a temporary name (base/file.h) and renamed at the end; a
// stream (a pipe, /dev/stdout; base/stream_path.h) is written directly, behind what it holds.
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "mxtrain/base/file.h"

namespace mxtrain::report {

// How one result for each example is written: a line of CSV, or an object of JSON in a line.
enum class EachFormat { kCsv, kJsonLines };

class ResultFile {
 public:
  explicit ResultFile(std::string path);  // "": stdout. Throws kFileSystem, with the reason
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  // Both throw kFileSystem, with the reason, if something could not be written.
  void Write(std::string_view bytes);
  void Finish();  // otherwise no file is created

 private:
  bool ToStdout() const { return path_.empty(); }
  void Check(bool good) const;

  const std::string path_;
  std::optional<FileWriter> file_;  // for a file; else `stream_`
  std::ofstream special_;
  std::ostream& stream_;
};

}  // namespace mxtrain::report
