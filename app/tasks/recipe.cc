// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/recipe.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/config/expression.h"
#include "mxtrain/base/error.h"

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
  for (const char c : config::Escaped(text)) {
    if (static_cast<unsigned char>(c) < ' ') {
      quoted += format("\\x{:02x}", c);
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "\"";
}

int64_t ValidationCount(const SynthRequest& request) {
  const auto wanted = std::llround(static_cast<double>(request.count) * request.val);
  const int64_t val = request.val > 0 ? std::max<int64_t>(wanted, 1) : 0;
  if (val < request.count) return val;
  Throw(ErrorKind::kUsage, "--count {} with --val {} leaves no image to train on", request.count,
        request.val);
}

}  // namespace mxtrain::tasks
