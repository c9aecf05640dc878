// SPDX-License-Identifier: Apache-2.0
#include "app/config/near_file.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostEntries = 10'000;

// Sorted; none if there are too many, or the folder cannot be read.
std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with('.')) names.push_back(name);
    if (names.size() > kMostEntries) return {};
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool IsConfiguration(const std::string& name) {
  return name.ends_with(".yaml") || name.ends_with(".yml");
}

// Without their endings, which most files share and which make any two short names alike.
bool AreStemsNear(const fs::path& name, const fs::path& other) {
  if (!name.has_extension() || !other.has_extension()) return true;
  const std::string stem = other.stem().string();
  return !Nearest(name.stem().string(), std::span(&stem, 1)).empty();
}

}  // namespace

std::string DidYouMeanFile(const std::string& path, NearFiles wanted) {
  std::error_code none;
  fs::path meant;
  bool replaced = false;
  for (const fs::path& part : fs::path(path)) {
    if (replaced || part.empty() || fs::exists(meant / part, none)) {
      meant /= part;
      continue;
    }
    std::vector<std::string> names = NamesIn(meant);
    std::erase_if(names, [&](const std::string& name) {
      return !AreStemsNear(part, name) || (wanted == NearFiles::kData && IsConfiguration(name) &&
                                           !IsConfiguration(part.string()));
    });
    const std::string nearest = Nearest(part.string(), names);
    if (nearest.empty()) return "";
    meant /= nearest;
    replaced = true;
  }
  return replaced && fs::exists(meant, none) ? format("; did you mean '{}'?", meant.string()) : "";
}

}  // namespace mxtrain::config
