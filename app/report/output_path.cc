// SPDX-License-Identifier: Apache-2.0
#include "app/report/output_path.h"

#include <algorithm>
#include <filesystem>

#include "app/report/run_folder.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/stream_path.h"

namespace mxtrain::report {
namespace {

namespace fs = std::filesystem;

bool IsNone(const std::string& path) {
  return path.empty() || path == "-";
}

// Without links, also of a file that does not exist.
fs::path Canonical(const fs::path& path) {
  std::error_code none;
  return fs::weakly_canonical(fs::absolute(path, none), none);
}

// Whether `path` is `folder` or lies below it.
bool LiesIn(const fs::path& path, const fs::path& folder) {
  const fs::path below = Canonical(path).lexically_relative(Canonical(folder));
  return !below.empty() && *below.begin() != "..";
}

void RequireNotRead(const std::string& written, std::span<const std::string> read) {
  std::error_code none;
  for (const std::string& input : read) {
    if (IsNone(input)) continue;
    if (fs::equivalent(written, input, none) || IsFileOfRun(input, written)) {
      Throw(ErrorKind::kUsage, "{} would replace what the command reads ({}); write another file",
            written, input);
    }
  }
}

void RequireFreeFile(const std::string& written, std::span<const std::string> read, bool overwrite,
                     const std::string& flag) {
  RequireNotRead(written, read);
  std::error_code none;
  if (!fs::exists(written, none)) return;
  if (fs::is_directory(written, none))
    Throw(ErrorKind::kFileSystem, "{} is a folder; give the name of a file", written);
  if (overwrite) return;
  Throw(ErrorKind::kFileSystem,
        "{} exists already; use --overwrite to replace it, or write another{}", written,
        flag.empty() ? "" : format(" with {}", flag));
}

}  // namespace

void RequireFree(std::span<const std::string> written, std::span<const std::string> read,
                 bool overwrite, const std::string& flag) {
  for (size_t i = 0; i < written.size(); ++i) {
    if (IsNone(written[i]) || IsStream(written[i])) continue;
    RequireFreeFile(written[i], read, overwrite, flag);
    const auto twice = std::ranges::find_if(written.first(i), [&](const std::string& other) {
      return !IsNone(other) && Canonical(other) == Canonical(written[i]);
    });
    if (twice != written.begin() + static_cast<std::ptrdiff_t>(i))
      Throw(ErrorKind::kUsage, "{} is named for two outputs; write two files", written[i]);
  }
}

void RequireFreeFolder(const std::string& folder, std::span<const std::string> read,
                       bool overwrite) {
  std::error_code none;
  if (folder.empty() || !fs::exists(folder, none)) return;
  if (!fs::is_directory(folder, none))
    Throw(ErrorKind::kFileSystem, "{} is a file; give the name of a folder", folder);
  if (fs::is_empty(folder, none)) return;
  for (const std::string& input : read) {
    if (!IsNone(input) && LiesIn(input, folder))
      Throw(ErrorKind::kUsage, "{} holds what the command reads ({}); write into another folder",
            folder, input);
  }
  if (overwrite) return;
  Throw(ErrorKind::kFileSystem,
        "{} is not empty; use --overwrite to replace files in it, or write into another folder",
        folder);
}

}  // namespace mxtrain::report
