// SPDX-License-Identifier: Apache-2.0
#include "app/report/output_path.h"

#include <algorithm>
#include <filesystem>

#include "app/report/run_folder.h"
#include "mxtrain/base/error.h"

namespace mxtrain::report {
namespace {

namespace fs = std::filesystem;

bool IsNone(const std::string& path) {
  return path.empty() || path == "-";
}

}  // namespace

void RequireNotRead(const std::string& written, std::span<const std::string> read) {
  std::error_code none;
  // A pipe or /dev/stdout is not replaced.
  if (IsNone(written) || (fs::exists(written, none) && fs::is_other(written, none))) return;
  for (const std::string& input : read) {
    if (IsNone(input)) continue;
    if (fs::equivalent(written, input, none) || IsFileOfRun(input, written)) {
      Throw(ErrorKind::kUsage, "{} would replace what the command reads ({}); write another file",
            written, input);
    }
  }
}

void RequireFree(const std::string& written, std::span<const std::string> read, bool overwrite) {
  RequireNotRead(written, read);
  if (IsNone(written) || overwrite || !fs::exists(written)) return;
  Throw(ErrorKind::kFileSystem,
        "{} exists already; use --overwrite to replace it, or write another", written);
}

}  // namespace mxtrain::report
