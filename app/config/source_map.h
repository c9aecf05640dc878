// SPDX-License-Identifier: Apache-2.0
#pragma once
// The source texts of a configuration: values refer to them by place, and messages show their
// lines.
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mxtrain::config {

// A source location: line and column count from 1, column and length in bytes. file < 0: no
// location, a default.
struct Place {
  int file = -1;
  int line = 0, column = 0, length = 0;
  explicit operator bool() const { return file >= 0; }
  friend auto operator<=>(const Place&, const Place&) = default;
};

// Not thread-safe while files are added.
class SourceMap {
 public:
  // `name` as messages show it; `folder` is what relative paths inside it are relative to. Returns
  // the id for Place::file.
  int AddFile(std::string name, std::string text, std::filesystem::path folder);
  // The command line overrides form one source, one per line.
  int AddCommandLine(std::string text, std::filesystem::path working_folder);

  const std::string& Name(int file) const { return files_[static_cast<size_t>(file)].name; }
  const std::string& Text(int file) const { return files_[static_cast<size_t>(file)].text; }
  const std::filesystem::path& Folder(int file) const {
    return files_[static_cast<size_t>(file)].folder;
  }
  bool IsCommandLine(const Place& place) const {
    return place && files_[static_cast<size_t>(place.file)].command_line;
  }
  std::string_view Line(int file, int line) const;  // without its end; "" past the last
  // "net.yaml:31" for errors of the library; "command line"; "" without a location.
  std::string Where(const Place& place) const;
  // "net.yaml:31:5", "command line", "default": one value's origin.
  std::string Origin(const Place& place) const;

 private:
  struct File {
    File(std::string name, std::string text, std::filesystem::path folder, bool command_line);
    std::string name, text;
    std::vector<size_t> lines;  // where each begins
    std::filesystem::path folder;
    bool command_line;
  };
  std::deque<File> files_;
};

}  // namespace mxtrain::config
