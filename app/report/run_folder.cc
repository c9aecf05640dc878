#include "app/report/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::report {
namespace {

namespace fs = std::filesystem;

// The number of NAME-0012, or 0 for another name.
int NumberOf(const std::string& file, const std::string& name) {
  if (!file.starts_with(name + "-")) return 0;
  const std::string digits = file.substr(name.size() + 1);
  const bool number = digits.size() >= 4 && std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return number ? std::atoi(digits.c_str()) : 0;
}

int HighestNumber(const fs::path& parent, const std::string& name) {
  int highest = 0;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(parent, missing)) highest = std::max(highest, NumberOf(entry.path().filename().string(), name));
  return highest;
}

void MakeFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) Throw(ErrorKind::kFileSystem, "cannot make the folder {}: {}", path.string(), error.message());
}

}  // namespace

class RunFolder::Lock {
 public:
  explicit Lock(const std::string& folder) : fd_(open((folder + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (fd_ < 0) Throw(ErrorKind::kFileSystem, "cannot write into {}: {}", folder, std::strerror(errno));
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return;
      char holder[32] = {};
      const ssize_t size = pread(fd_, holder, sizeof holder - 1, 0);
      close(fd_);
      const std::string process = size > 0 ? format(" (process {})", std::atoll(holder)) : "";
      Throw(ErrorKind::kFileSystem, "{} belongs to a run that is under way{}; stop that one first, or choose another --out", folder, process);
    }
    const std::string own = std::to_string(getpid()) + "\n";
    // Only for the message above.
    if (ftruncate(fd_, 0) == 0) static_cast<void>(pwrite(fd_, own.data(), own.size(), 0) + 1);
  }
  ~Lock() { close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_;
};

RunFolder::RunFolder(std::string path) : path_(std::move(path)), lock_(std::make_shared<const Lock>(path_)) {}

RunFolder RunFolder::Create(const std::string& parent, const std::string& name, const std::string& out, bool overwrite) {
  if (!out.empty()) {
    const bool run = fs::exists(fs::path(out) / "config.yaml");
    if (run && !overwrite) {
      Throw(ErrorKind::kFileSystem, "{} holds a run already; add --overwrite to replace it, --resume to go on with it, or choose another --out", out);
    }
    constexpr const char* kParts[] = {"checkpoints", "metrics.csv", "events.jsonl", "mxtrain.log", "result.json", "report.html", "tb", "plots", "samples", "eval"};
    for (const char* part : kParts) {
      // What no run has written is not ours to replace.
      if (run || !fs::exists(fs::path(out) / part)) continue;
      Throw(ErrorKind::kFileSystem, "{} holds {}, which is of no run; choose another --out", out, part);
    }
    MakeFolder(out);
    RunFolder folder(out);
    for (const char* part : kParts) {
      std::error_code error;
      fs::remove_all(fs::path(out) / part, error);
      if (error) Throw(ErrorKind::kFileSystem, "cannot replace {}/{}: {}", out, part, error.message());
    }
    MakeFolder(fs::path(out) / "checkpoints");
    return folder;
  }
  MakeFolder(parent);
  for (int number = HighestNumber(parent, name) + 1;; ++number) {
    const fs::path path = fs::path(parent) / format("{}-{:04}", name, number);
    std::error_code error;
    if (!fs::create_directory(path, error)) {
      if (error) Throw(ErrorKind::kFileSystem, "cannot make the folder {}: {}", path.string(), error.message());
      continue;  // another process took the number
    }
    RunFolder folder(path.string());
    MakeFolder(path / "checkpoints");
    return folder;
  }
}

RunFolder RunFolder::Open(const std::string& path) {
  if (!fs::is_directory(path)) Throw(ErrorKind::kFileSystem, "{} is not a run folder", path);
  return RunFolder(path);
}

RunFolder RunFolder::Newest(const std::string& parent, const std::string& name) {
  const int number = HighestNumber(parent, name);
  if (number == 0) Throw(ErrorKind::kFileSystem, "{} holds no run of '{}' to go on with; --or-begin begins one where there is none", parent, name);
  return RunFolder((fs::path(parent) / format("{}-{:04}", name, number)).string());
}

void RunFolder::BecomeLatest() const {
  const fs::path path = fs::absolute(path_ + "/").lexically_normal().parent_path(), parent = path.parent_path();
  if (parent.filename() != "runs") return;
  const fs::path beside = parent / format(".latest-{}", getpid());
  std::error_code ignored;  // `latest` is a convenience: some file systems have no links
  fs::create_directory_symlink(path.filename(), beside, ignored);
  fs::rename(beside, parent / "latest", ignored);
}

bool RunFolder::Has(const std::string& parent, const std::string& name) { return HighestNumber(parent, name) > 0; }

bool RunFolder::IsBusy(const std::string& path) {
  const int fd = open((path + "/.lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool busy = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return busy;
}

void RunFolder::Write(const std::string& name, const std::string& text) const { WriteFileAtomically(File(name), text); }

}  // namespace mxtrain::report
