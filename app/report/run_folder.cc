// SPDX-License-Identifier: Apache-2.0
#include "app/report/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/train/checkpoint.h"

namespace mxtrain::report {
namespace {

namespace fs = std::filesystem;

// The number of NAME-0012, or 0 for other names.
int NumberOf(const std::string& file, const std::string& name) {
  if (!file.starts_with(name + "-")) return 0;
  const std::string digits = file.substr(name.size() + 1);
  const bool number = digits.size() >= 4 && digits.size() <= 9 &&
                      std::all_of(digits.begin(), digits.end(),
                                  [](unsigned char c) { return std::isdigit(c) != 0; });
  return number ? std::atoi(digits.c_str()) : 0;
}

int HighestNumber(const fs::path& parent, const std::string& name) {
  int highest = 0;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(parent, missing))
    highest = std::max(highest, NumberOf(entry.path().filename().string(), name));
  return highest;
}

// What a run writes in addition to config.yaml, which marks a run folder: folders, then files.
constexpr const char* kFolders[] = {"checkpoints", "tb", "plots", "samples", "eval"};
constexpr const char* kFiles[] = {"metrics.csv",    "events.jsonl",  "mxtrain.log", "mxtrain.1.log",
                                  "mxtrain.2.log",  "mxtrain.3.log", "result.json", "report.html",
                                  "trained_on.txt", "monitor.csv"};
constexpr std::string_view kLock = ".lock";
constexpr std::string_view kTemporary = ".tmp-";  // in names of incomplete files (base/file.h)

std::vector<std::string> Parts() {
  std::vector<std::string> parts(std::begin(kFolders), std::end(kFolders));
  parts.insert(parts.end(), std::begin(kFiles), std::end(kFiles));
  return parts;
}

// Files that file managers leave in folders that they show.
bool IsOfFileManager(const std::string& name) {
  return name == ".DS_Store" || name == "Thumbs.db" || name == "desktop.ini";
}

// Whether it exists and is not a folder that may be removed: empty, but for such files.
bool HoldsSomething(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type != fs::file_type::directory) return type != fs::file_type::not_found;
  const fs::directory_iterator entries(path, error);
  return error || std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
           return !IsOfFileManager(entry.path().filename().string());
         });
}

bool IsLog(const std::string& name) {
  return name.starts_with("mxtrain.") && name.ends_with(".log");
}

// What a run that could not begin has left beside its lock.
bool IsLogOfStart(const fs::path& path) {
  return IsLog(path.filename().string()) && fs::is_regular_file(fs::symlink_status(path)) &&
         fs::exists(path.parent_path() / kLock);
}

bool HoldsCheckpoint(const fs::path& folder) {
  for (const char* name : {"last", "previous", "best"}) {
    try {
      if (IsCheckpoint((folder / name).string())) return true;
    } catch (const Error&) {  // unreadable
    }
  }
  return false;
}

using Names = std::initializer_list<std::string_view>;

// Whether the file is one of these drawings, as PNG or SVG.
bool IsDrawing(const fs::path& file, Names stems) {
  return (file.extension() == ".png" || file.extension() == ".svg") &&
         std::find(stems.begin(), stems.end(), file.stem().string()) != stems.end();
}
bool IsTable(const fs::path& file, Names stems) {
  return file.extension() == ".csv" &&
         std::find(stems.begin(), stems.end(), file.stem().string()) != stems.end();
}

// Whether a run writes an entry of this name into one of its folders, or it is nobody's.
bool IsOwnName(const std::string& folder, const std::string& name) {
  if (name.find(kTemporary) != std::string::npos || IsOfFileManager(name)) return true;
  if (folder == "tb") return name.starts_with("events.out.tfevents.");
  if (folder == "plots") return IsDrawing(name, {"loss", "metrics", "learning_rate"});
  if (folder == "samples") return name.starts_with("train_batch") && name.ends_with(".png");
  if (folder == "eval") {
    return name == "report.json" ||
           IsDrawing(name, {"confusion", "classes", "reliability", "mistakes", "worst", "curves",
                            "predictions", "predictions_2", "predictions_3", "predictions_4",
                            "predictions_5", "predictions_6", "predictions_7", "predictions_8"}) ||
           IsTable(name, {"classes", "confusion", "calibration", "thresholds", "decisions",
                          "mistakes", "curves", "confused_letters"});
  }
  std::string base = name;
  for (const std::string_view ending : {".new", ".temperature.json"}) {
    if (base.ends_with(ending)) base.resize(base.size() - ending.size());
  }
  return base == "last" || base == "previous" || base == "best" || base.starts_with("best-") ||
         NumberOf(base, "epoch") > 0 || base == "epoch-0000";
}

}  // namespace

bool IsFileOfRun(const std::string& run, const std::string& path) {
  std::error_code none;
  if (!fs::is_directory(run, none) || !IsRunFolder(run)) return false;
  const fs::path below =
      fs::weakly_canonical(path, none).lexically_relative(fs::canonical(run, none));
  if (below.empty() || *below.begin() == "..") return false;
  const std::string folder = below.parent_path().string(), name = below.filename().string();
  if (folder.empty()) return name == "config.yaml" || std::ranges::count(Parts(), name) > 0;
  const bool is_part = std::ranges::count(kFolders, folder) > 0;
  return is_part && IsOwnName(folder, name);
}

namespace {

// The first entry, "checkpoints/notes.txt", that the run's own folders `part` hold and that no run
// writes; "" if there is none. A link is not followed. eval/ has a folder for each of several
// heads.
std::string ForeignIn(const fs::path& run, const std::string& part, const std::string& kind) {
  std::error_code none;
  if (!fs::is_directory(fs::symlink_status(run / part, none))) return "";
  for (const auto& entry : fs::directory_iterator(run / part)) {
    const std::string name = entry.path().filename().string(), inside = format("{}/{}", part, name);
    const bool folder = !entry.is_symlink() && entry.is_directory();
    if (folder && kind == "eval" && part == kind) {
      const std::string foreign = ForeignIn(run, inside, kind);
      if (!foreign.empty()) return foreign;
    } else if (folder ? HoldsSomething(entry.path()) : !IsOwnName(kind, name)) {
      return inside;
    }
  }
  return "";
}

// That the parts of a run can be removed.
void RequireOwn(const std::string& run) {
  std::string foreign;
  for (const char* part : kFolders) {
    if (foreign.empty()) foreign = ForeignIn(run, part, part);
  }
  for (const char* part : kFiles) {  // a folder of that name
    if (foreign.empty() && fs::is_directory(fs::symlink_status(fs::path(run) / part)) &&
        HoldsSomething(fs::path(run) / part))
      foreign = part;
  }
  if (foreign.empty()) return;
  Throw(ErrorKind::kFileSystem,
        "--overwrite would delete {}/{}, which does not belong to the run; move it elsewhere, or "
        "choose another --out",
        run, foreign);
}

}  // namespace

bool IsRunFolder(const std::string& path) {
  const fs::path folder(path);
  if (!fs::exists(folder / "config.yaml")) return false;
  return fs::exists(folder / kLock) ||
         (fs::exists(folder / "origin.txt") && fs::exists(folder / "command.txt")) ||
         HoldsCheckpoint(folder / "checkpoints");
}

class RunFolder::Lock {
 public:
  explicit Lock(const std::string& folder)
      : file_(folder + "/" + std::string(kLock), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK,
              "open") {
    struct stat info {};
    if (fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      Throw(ErrorKind::kFileSystem, "cannot write into {}: its {} is not a regular file; remove it",
            folder, kLock);
    }
    if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return;
      char holder[32] = {};
      const ssize_t size = pread(file_.get(), holder, sizeof holder - 1, 0);
      const std::string process = size > 0 ? format(" (process {})", std::atoll(holder)) : "";
      Throw(ErrorKind::kFileSystem,
            "{} is in use by a running process{}; stop it first, or choose another --out", folder,
            process);
    }
    // A copy that shares its files by hard links, or a link to another's lock.
    if (info.st_nlink > 1) return;
    const std::string own = std::to_string(getpid()) + "\n";
    // Only for the message above.
    if (ftruncate(file_.get(), 0) == 0)
      static_cast<void>(pwrite(file_.get(), own.data(), own.size(), 0) + 1);
  }

 private:
  const FileDescriptor file_;
};

RunFolder::RunFolder(std::string path)
    : path_(std::move(path)), lock_(std::make_shared<const Lock>(path_)) {}

namespace {

// The first entry of a folder without a run, by name; "" if there is none. Hidden files and those
// of file managers do not count, nor does what a start that failed has left: temporary files, empty
// folders, its log.
std::string ForeignEntry(const std::string& path) {
  const std::vector<std::string> parts = Parts();
  std::string first;
  if (!fs::is_directory(path)) return first;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    const bool empty_part =
        std::find(parts.begin(), parts.end(), name) != parts.end() && !HoldsSomething(entry.path());
    if (name.starts_with('.') || IsOfFileManager(name) ||
        name.find(kTemporary) != std::string::npos || empty_part || IsLogOfStart(entry.path()))
      continue;
    if (first.empty() || name < first) first = name;
  }
  return first;
}

// That `out` can become a run folder: it contains no run, unless that is overwritten, and nothing
// that no run has written.
void RequireFree(const std::string& out, bool overwrite) {
  if (!IsRunFolder(out)) {
    std::vector<std::string> parts = Parts();
    parts.insert(parts.begin(), "config.yaml");
    for (const std::string& part : parts) {
      // Do not replace anything that no run has written.
      if (!HoldsSomething(fs::path(out) / part) || IsLogOfStart(fs::path(out) / part)) continue;
      Throw(ErrorKind::kFileSystem,
            "{} contains {}, which does not belong to a run; choose another --out", out, part);
    }
  } else if (!overwrite) {
    Throw(ErrorKind::kFileSystem,
          "{} already contains a run; use --overwrite to replace it, --resume to continue it, or "
          "choose another --out",
          out);
  } else {
    RequireOwn(out);
  }
}

}  // namespace

void RunFolder::RequireCreatable(const std::string& parent, const std::string& out,
                                 bool overwrite) {
  if (!out.empty()) RequireFree(out, overwrite);
  const std::string wanted = out.empty() ? parent : out;
  fs::path existing = fs::absolute(wanted).lexically_normal();
  std::error_code none;
  while (existing.has_relative_path() && !fs::exists(fs::symlink_status(existing, none)))
    existing = existing.parent_path();
  if (!fs::is_directory(existing, none))
    Throw(ErrorKind::kFileSystem, "cannot create the folder {}: {} is not a folder", wanted,
          existing.string());
  if (access(existing.c_str(), W_OK | X_OK) != 0)
    Throw(ErrorKind::kFileSystem, "cannot write into {}: {}", existing.string(), ReasonOf(errno));
}

RunFolder RunFolder::Create(const std::string& parent, const std::string& name,
                            const std::string& out, bool overwrite, const std::string& config) {
  if (!out.empty()) {
    RequireFree(out, overwrite);
    MakeFolders(out);
    RunFolder folder(out);
    for (const std::string& part : Parts()) {
      std::error_code error;
      fs::remove_all(folder.File(part), error);  // removes a link, not its target
      if (error)
        Throw(ErrorKind::kFileSystem, "cannot replace {}: {}", folder.File(part),
              ReasonOf(error.value()));
    }
    folder.Begin(config);
    return folder;
  }
  const auto fail = [](const std::string& why) {
    Throw(ErrorKind::kFileSystem, "{}; --out DIR writes the run elsewhere", why);
  };
  try {
    MakeFolders(parent);
  } catch (const Error& error) {
    fail(error.what());
  }
  for (int number = HighestNumber(parent, name) + 1;; ++number) {
    const fs::path path = fs::path(parent) / format("{}-{:04}", name, number);
    std::error_code error;
    if (!fs::create_directory(path, error)) {
      if (error)
        fail(format("cannot create the folder {}: {}", path.string(), ReasonOf(error.value())));
      continue;  // another process took the number
    }
    RunFolder folder(path.string());
    folder.Begin(config);
    return folder;
  }
}

void RunFolder::Begin(const std::string& config) const {
  Write("config.yaml", config);
  MakeOwnFolder(checkpoints());
}

RunFolder RunFolder::OpenRun(const std::string& path) {
  const std::string entry = IsRunFolder(path) ? "" : ForeignEntry(path);
  if (entry.empty()) return Open(path);
  Throw(ErrorKind::kUsage,
        "there is no run in {} to continue: it contains {}, which does not belong to a run", path,
        entry);
}

RunFolder RunFolder::Open(const std::string& path) {
  if (!fs::is_directory(path)) Throw(ErrorKind::kFileSystem, "{} is not a run folder", path);
  RunFolder folder(path);
  folder.RefuseLinks();
  return folder;
}

void RunFolder::RefuseLinks() const {
  for (const char* part : kFolders) {
    std::error_code none;
    if (!fs::is_symlink(File(part), none)) continue;
    Throw(ErrorKind::kFileSystem,
          "{} is a symbolic link, and the run must not change its target; replace it by a folder",
          File(part));
  }
}

bool RunFolder::IsUnused(const std::string& path) {
  return ForeignEntry(path).empty();
}

RunFolder RunFolder::Newest(const std::string& parent, const std::string& name) {
  const int number = HighestNumber(parent, name);
  if (number == 0)
    Throw(ErrorKind::kFileSystem,
          "{} contains no run of '{}' to continue; use --or-begin to start one", parent, name);
  return OpenRun((fs::path(parent) / format("{}-{:04}", name, number)).string());
}

void RunFolder::BecomeLatest() const {
  const fs::path path = fs::absolute(path_ + "/").lexically_normal().parent_path(),
                 parent = path.parent_path();
  if (parent.filename() != "runs") return;
  // Optional: some file systems have no links.
  ReplaceLink(path.filename().string(), (parent / "latest").string());
}

bool RunFolder::Has(const std::string& parent, const std::string& name) {
  return HighestNumber(parent, name) > 0;
}

bool RunFolder::IsBusy(const std::string& path) {
  const int fd = open((path + "/.lock").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  const bool busy = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return busy;
}

void RunFolder::Write(const std::string& name, const std::string& text) const {
  WriteFileAtomically(File(name), text);
}

}  // namespace mxtrain::report
