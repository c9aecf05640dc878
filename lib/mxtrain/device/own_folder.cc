// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/own_folder.h"

#include <dlfcn.h>

#include <filesystem>

namespace mxtrain {

std::string BesideThisLibrary(const std::string& file) {
  namespace fs = std::filesystem;
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&BesideThisLibrary), &info) || !info.dli_fname)
    return "";
  std::error_code ignored;
  const fs::path path = fs::weakly_canonical(info.dli_fname, ignored).parent_path() / file;
  return fs::exists(path, ignored) ? path.string() : "";
}

}  // namespace mxtrain
