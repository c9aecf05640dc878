// SPDX-License-Identifier: Apache-2.0
#include "app/commands/trained_files.h"

#include <filesystem>
#include <sstream>

#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/io/example_files.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostFiles = 100'000;
constexpr size_t kMostMetrics = size_t{256} << 20;

// A line of the list; "" for an example without a file. Data sets that number their images alike
// have the same paths, but not files of the same sizes.
std::string LineOf(const io::Source& source, int64_t index, const std::string& root) {
  const std::string file = source.FileOf(index);
  if (file.empty() || file.find('\n') != std::string::npos) return "";
  std::error_code none;
  const auto bytes = fs::file_size(file, none);
  return none ? "" : format("{} {}", bytes, io::FileBelow(source, index, root));
}

}  // namespace

TrainedFiles TrainedFiles::Of(const io::Source& source, const std::string& root) {
  TrainedFiles found;
  if (source.size() > kMostFiles) return found;
  for (int64_t i = 0; i < source.size(); ++i) {
    std::string line = LineOf(source, i, root);
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
  for (int64_t i = 0; i < source.size() && !empty(); ++i) {
    if (files_.contains(LineOf(source, i, root))) names.push_back(source.Name(i));
  }
  return names;
}

}  // namespace mxtrain::commands
