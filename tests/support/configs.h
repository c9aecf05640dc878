// SPDX-License-Identifier: Apache-2.0
#pragma once
// The complete configurations in configs/, sorted: without included fragments and lists of names.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/build_paths.h"

namespace mxtrain::test {

inline std::vector<std::filesystem::path> WholeConfigs() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SourceDir() / "configs")) {
    const std::filesystem::path& file = entry.path();
    const std::string folder = file.parent_path().filename().string();
    const bool part = folder == "common" || folder == "names" || folder == "decoders";
    if (file.extension() == ".yaml" && !part) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace mxtrain::test
