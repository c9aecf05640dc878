// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/example_files.h"

#include <filesystem>

namespace mxtrain::io {

namespace fs = std::filesystem;

std::string RootOf(const Kwargs& params) {
  std::string path, root;
  for (const auto& [key, value] : params) {
    if (key == "path") path = value;
    if (key == "root") root = value;
  }
  if (!root.empty()) return root;
  std::error_code none;
  return fs::is_directory(path, none) ? path : fs::path(path).parent_path().string();
}

std::string FileBelow(const Source& source, int64_t index, const std::string& root) {
  std::string file = source.FileOf(index);
  if (!root.empty() && file.starts_with(root + "/")) return file.substr(root.size() + 1);
  const std::string below =
      fs::path(file).lexically_normal().lexically_relative(fs::path(root).lexically_normal());
  return below.empty() || below == ".." || below.starts_with("../") ? file : below;
}

}  // namespace mxtrain::io
