// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/recipe.h"

#include <filesystem>

namespace mxtrain::tasks {

namespace fs = std::filesystem;

std::string PathInFile(const std::string& path, const std::string& output) {
  const fs::path base =
      output == "-" ? fs::current_path() : fs::absolute(output).lexically_normal().parent_path();
  const std::string relative = fs::path(path).lexically_relative(base).string();
  return relative.empty() || relative.starts_with("../..") ? path : relative;
}

std::string QuoteYaml(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return quoted + "\"";
}

}  // namespace mxtrain::tasks
