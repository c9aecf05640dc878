// SPDX-License-Identifier: Apache-2.0
#include "app/commands/trained_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/io/example_files.h"
#include "mxtrain/io/image_archive.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostFiles = 100'000;
constexpr uintmax_t kMostArchiveBytes = uintmax_t{4} << 30;
constexpr size_t kMostMetrics = size_t{256} << 20;

// The archive that holds a source's images (image_archive.h), by their names; "" for other sources.
std::string ArchiveOf(const io::Source& source) {
  if (source.size() == 0 || !source.FileOf(0).empty()) return "";
  const std::string name = source.Name(0);
  std::error_code none;
  for (size_t end = name.find('/', 1); end != name.npos; end = name.find('/', end + 1)) {
    std::string path = name.substr(0, end);
    if (fs::is_regular_file(path, none)) return io::IsImageArchive(path) ? path : "";
  }
  return "";
}

// How long what the paths begin with is, folder by folder, with a folder left in each of them: an
// archive of a folder begins with its name, or those of several above it.
size_t CommonFolders(const std::vector<std::string>& paths) {
  size_t common = 0;
  for (;;) {
    const size_t end = paths[0].find('/', common);
    if (end == std::string::npos) return common;
    const std::string_view begin = std::string_view(paths[0]).substr(0, end + 1);
    if (!std::ranges::all_of(paths, [&](const std::string& path) {
          return path.starts_with(begin) && path.find('/', end + 1) != path.npos;
        }))
      return common;
    common = end + 1;
  }
}

// Bytes of an example's image; nothing if it cannot be read.
std::optional<size_t> BytesOf(const io::Source& source, int64_t index, io::Sample* sample) {
  try {
    source.Read(index, sample);
    return sample->data[0].encoded.size();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
    return std::nullopt;
  }
}

// Of the images in an archive, which are read; none of a large one, which would take long.
std::vector<std::string> LinesOfArchive(const io::Source& source, const std::string& archive) {
  std::error_code none;
  std::vector<std::string> lines, paths;
  if (fs::file_size(archive, none) > kMostArchiveBytes || none) return lines;
  for (int64_t i = 0; i < source.size(); ++i)
    paths.push_back(source.Name(i).substr(archive.size() + 1));
  const size_t common = CommonFolders(paths);
  io::Sample sample;
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto bytes = BytesOf(source, static_cast<int64_t>(i), &sample);
    const bool listed = bytes && paths[i].find('\n') == std::string::npos;
    lines.push_back(listed ? format("{} {}", *bytes, paths[i].substr(common)) : "");
  }
  return lines;
}

// The lines of the list, by example; "" for one without a file. Data sets that number their images
// alike have the same paths, but not files of the same sizes.
std::vector<std::string> LinesOf(const io::Source& source, const std::string& root) {
  if (const std::string archive = ArchiveOf(source); !archive.empty())
    return LinesOfArchive(source, archive);
  std::vector<std::string> lines;
  for (int64_t i = 0; i < source.size(); ++i) {
    const std::string file = source.FileOf(i);
    std::error_code none;
    const bool listed = !file.empty() && file.find('\n') == std::string::npos;
    const auto bytes = listed ? fs::file_size(file, none) : 0;
    lines.push_back(listed && !none ? format("{} {}", bytes, io::FileBelow(source, i, root)) : "");
  }
  return lines;
}

}  // namespace

TrainedFiles TrainedFiles::Of(const io::Source& source, const std::string& root) {
  TrainedFiles found;
  if (source.size() > kMostFiles) return found;
  for (std::string& line : LinesOf(source, root)) {
    if (!line.empty()) found.files_.insert(std::move(line));
  }
  return found;
}

TrainedFiles TrainedFiles::OfRun(const std::string& run) {
  TrainedFiles found;
  const std::string file = run + "/" + kName;
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return found;
  std::istringstream lines(ReadFile(file, kMostMetrics));
  for (std::string line; std::getline(lines, line);) found.files_.insert(line);
  return found;
}

void TrainedFiles::Save(const report::RunFolder& folder) const {
  std::string text;
  for (const std::string& line : files_) text += line + "\n";
  folder.Write(kName, text);
}

std::vector<std::string> TrainedFiles::In(const io::Source& source, const std::string& root) const {
  std::vector<std::string> names;
  if (empty()) return names;
  const std::vector<std::string> lines = LinesOf(source, root);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (files_.contains(lines[i])) names.push_back(source.Name(static_cast<int64_t>(i)));
  }
  return names;
}

}  // namespace mxtrain::commands
