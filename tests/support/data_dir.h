// SPDX-License-Identifier: Apache-2.0
#pragma once
// Real data sets, which are not part of the project.
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/support/build_paths.h"

namespace mxtrain::test {

// The folder of a data set ("mnist", "clothing"): in MXTRAIN_DATA_DIR, in data/ of the source tree,
// or in ../shared/data.
inline std::optional<std::string> DataDir(const std::string& name) {
  const char* given = std::getenv("MXTRAIN_DATA_DIR");
  const std::filesystem::path root = SourceDir();
  for (const std::filesystem::path& base : {given ? std::filesystem::path(given) : root / "data",
                                            root / "data", root / "../shared/data"}) {
    std::error_code ignored;
    const std::filesystem::path folder = base / name;
    if (std::filesystem::is_directory(folder, ignored) &&
        !std::filesystem::is_empty(folder, ignored))
      return folder.string();
  }
  return std::nullopt;
}

}  // namespace mxtrain::test
