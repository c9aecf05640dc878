#include "app/config/source_map.h"

#include <utility>

#include "mxtrain/base/format.h"

namespace mxtrain::config {

int SourceMap::AddFile(std::string name, std::string text, std::filesystem::path folder) {
  files_.push_back({std::move(name), std::move(text), std::move(folder), false});
  return static_cast<int>(files_.size()) - 1;
}

int SourceMap::AddCommandLine(std::string text, std::filesystem::path working_folder) {
  files_.push_back({"command line", std::move(text), std::move(working_folder), true});
  return static_cast<int>(files_.size()) - 1;
}

std::string_view SourceMap::Line(int file, int line) const {
  std::string_view rest = Text(file);
  for (int i = 1; i < line; ++i) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
  }
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
