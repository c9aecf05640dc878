// SPDX-License-Identifier: Apache-2.0
#include "app/config/source_map.h"

#include <algorithm>
#include <utility>

#include "mxtrain/base/format.h"

namespace mxtrain::config {

SourceMap::File::File(std::string path, std::string content, std::filesystem::path base,
                      bool from_command_line)
    : name(std::move(path)),
      text(std::move(content)),
      lines{0},
      folder(std::move(base)),
      command_line(from_command_line) {
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 1))
    lines.push_back(end + 1);
}

int SourceMap::AddFile(std::string name, std::string text, std::filesystem::path folder) {
  files_.emplace_back(std::move(name), std::move(text), std::move(folder), false);
  return static_cast<int>(files_.size()) - 1;
}

int SourceMap::AddCommandLine(std::string text, std::filesystem::path working_folder) {
  files_.emplace_back("command line", std::move(text), std::move(working_folder), true);
  return static_cast<int>(files_.size()) - 1;
}

std::string_view SourceMap::Line(int file, int line) const {
  const File& source = files_[static_cast<size_t>(file)];
  const size_t index = static_cast<size_t>(std::max(1, line)) - 1;
  if (index >= source.lines.size()) return "";
  const std::string_view rest = std::string_view(source.text).substr(source.lines[index]);
  std::string_view found = rest.substr(0, rest.find('\n'));
  if (found.ends_with('\r')) found.remove_suffix(1);
  return found;
}

std::string SourceMap::Where(const Place& place) const {
  if (!place) return "";
  const File& file = files_[static_cast<size_t>(place.file)];
  return file.command_line ? file.name : format("{}:{}", file.name, place.line);
}

std::string SourceMap::Origin(const Place& place) const {
  if (!place) return "default";
  const File& file = files_[static_cast<size_t>(place.file)];
  return file.command_line ? file.name : format("{}:{}:{}", file.name, place.line, place.column);
}

}  // namespace mxtrain::config
