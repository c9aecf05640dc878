// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/stream_path.h"

#include <filesystem>

namespace mxtrain {

namespace fs = std::filesystem;

bool IsStream(const std::string& path) {
  std::error_code none;
  if (path.find('\0') != std::string::npos) return false;
  if (fs::exists(path, none) && fs::is_other(path, none)) return true;
  const auto of_process = [](const fs::path& at) { return at.string().starts_with("/proc/"); };
  const fs::path folder = fs::absolute(path, none).parent_path();
  return of_process(fs::canonical(folder, none)) || of_process(fs::read_symlink(path, none));
}

}  // namespace mxtrain
