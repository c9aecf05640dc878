#pragma once
// Where results go that come row by row: stdout, or a file that is seen whole or not at all. Such a file is written beside its name
// (NAME.tmp-PROCESS), which it gets at the end; what is there and no regular file (a pipe, /dev/stdout) is written as it stands.
#include <fstream>
#include <string>
#include <string_view>

namespace mxtrain::report {

class ResultFile {
 public:
  explicit ResultFile(std::string path);  // "": stdout. Throws kFileSystem, with the reason
  ~ResultFile();                          // without Finish: removes what was written of a file
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  // Both throw kFileSystem, with the reason, where something did not arrive.
  void Write(std::string_view bytes);
  void Finish();

 private:
  bool ToStdout() const { return path_.empty(); }
  void Check(bool good) const;

  const std::string path_, written_;  // its name, and that under which it is written
  std::ofstream file_;
  std::ostream& out_;
  bool finished_ = false;
};

}  // namespace mxtrain::report
