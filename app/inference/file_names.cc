// SPDX-License-Identifier: Apache-2.0
#include "app/inference/file_names.h"

#include <algorithm>

#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"

namespace mxtrain::inference {

namespace fs = std::filesystem;

std::string Shortened(const std::string& stem, const std::string& end) {
  constexpr size_t kLongest = 255;
  if (stem.size() + end.size() <= kLongest) return stem + end;
  const std::string sum = format("~{:016x}", Checksum(stem));
  size_t size = kLongest - std::min(kLongest, sum.size() + end.size());
  while (size > 0 && (static_cast<unsigned char>(stem[size]) & 0xc0) == 0x80)
    --size;  // not inside a UTF-8 character
  return stem.substr(0, size) + sum + end;
}

std::string FileName(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
  name = Shortened(name, "");
  return name.empty() || name == "." || name == ".." ? "_" + name : name;
}

fs::path StemBelow(const std::string& file, const std::string& name, const std::string& root) {
  if (file.empty()) return FileName(name);
  const fs::path path = root.empty() ? fs::path(file) : fs::path(file).lexically_relative(root);
  fs::path below;
  for (const fs::path& part : path.lexically_normal().relative_path()) {
    if (part != ".." && part != ".") below /= part;
  }
  return below.replace_extension();
}

}  // namespace mxtrain::inference
