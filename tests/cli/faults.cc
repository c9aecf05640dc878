// SPDX-License-Identifier: Apache-2.0
// Loaded before a program (LD_PRELOAD), this library makes one of its operations on files fail, or
// ends the process there. The program is the one that users run: nothing in it knows of faults.
// Operations count from 1 on, over all threads, where their path, or that of their descriptor, lies
// below a folder; starts of threads count, too.
//
//   FAULTS_BELOW  the folder, or a single file, absolute
//   FAULTS_LOG    a file: a letter for each operation, as it comes: o open to read, c open to
//                 write, r read, w write, s sync, n rename, l link, m make a folder, u remove,
//                 d list a folder, t start a thread
//   FAULTS_AT     the number of the operation that fails; with a + behind it, all operations of
//                 that letter from then on
//   FAULTS_ONLY   letters: others are not counted
//   FAULTS_KIND   an errno by name (ENOSPC, EIO, EMFILE, ENOMEM, EAGAIN); short: half of the bytes
//                 are read or written; before, after: SIGKILL then
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string Setting(const char* name) {
  const char* text = getenv(name);
  return text ? text : "";
}

int ErrnoOf(const std::string& kind) {
  static constexpr struct {
    const char* name;
    int value;
  } kAll[] = {
      {"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN}};
  for (const auto& one : kAll) {
    if (kind == one.name) return one.value;
  }
  return 0;
}

struct Faults {
  const std::string below = Setting("FAULTS_BELOW"), only = Setting("FAULTS_ONLY"),
                    at_text = Setting("FAULTS_AT"), kind = Setting("FAULTS_KIND");
  const long at = at_text.empty() ? 0 : std::atol(at_text.c_str());
  const bool for_good = at_text.ends_with('+');
  const int error = ErrnoOf(kind);
  const int log = below.empty() ? -1
                                : Real<int(const char*, int, ...)>("open")(
                                      Setting("FAULTS_LOG").c_str(),
                                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  std::atomic<long> count{0};
  std::atomic<char> failing{0};          // the letter that fails for good
  std::atomic<bool> watched[1024] = {};  // descriptors of files below the folder
};

Faults& TheFaults() {
  static Faults faults;
  return faults;
}

bool Lies(const char* path, int folder = AT_FDCWD) {
  const Faults& f = TheFaults();
  if (f.below.empty()) return false;
  if (path[0] != '/') {
    if (folder != AT_FDCWD) return folder >= 0 && folder < 1024 && f.watched[folder];
    char here[PATH_MAX];
    return getcwd(here, sizeof here) &&
           (std::string(here) + "/" + path + "/").starts_with(f.below + "/");
  }
  return (std::string(path) + "/").starts_with(f.below + "/");
}

bool Lies(int fd) {
  return fd >= 0 && fd < 1024 && TheFaults().watched[fd];
}

enum class Outcome { kGood, kFails, kShort, kKilledAfter };

// Counts an operation and returns its outcome. Sets errno if it fails.
Outcome Meet(char letter) {
  Faults& f = TheFaults();
  if (!f.only.empty() && f.only.find(letter) == std::string::npos) return Outcome::kGood;
  const long number = ++f.count;
  if (f.log >= 0) Real<ssize_t(int, const void*, size_t)>("write")(f.log, &letter, 1);
  if (number == f.at && f.for_good) f.failing = letter;
  if (number != f.at && f.failing != letter) return Outcome::kGood;
  if (f.kind == "before") kill(getpid(), SIGKILL);
  if (f.kind == "after") return Outcome::kKilledAfter;
  if (f.kind == "short") return Outcome::kShort;
  errno = f.error;
  return Outcome::kFails;
}

template <typename Operation>
auto Watched(bool lies, char letter, const Operation& operation) -> decltype(operation()) {
  const Outcome outcome = lies ? Meet(letter) : Outcome::kGood;
  if (outcome == Outcome::kFails) {
    if constexpr (std::is_pointer_v<decltype(operation())>) {
      return nullptr;
    } else {
      return -1;
    }
  }
  const auto result = operation();
  if (outcome == Outcome::kKilledAfter) kill(getpid(), SIGKILL);
  return result;
}

int OpenAt(int folder, const char* path, int flags, mode_t mode) {
  const bool lies = Lies(path, folder), writes = (flags & O_ACCMODE) != O_RDONLY;
  const int fd = Watched(lies, writes ? 'c' : 'o', [&] {
    return Real<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
  });
  if (fd >= 0 && fd < 1024) TheFaults().watched[fd] = lies;
  return fd;
}

// Bytes of a read or write that is to move `size`.
template <typename Operation>
ssize_t Move(int fd, char letter, size_t size, const Operation& operation) {
  const Outcome outcome = Lies(fd) ? Meet(letter) : Outcome::kGood;
  if (outcome == Outcome::kFails) return -1;
  const ssize_t moved = operation(outcome == Outcome::kShort && size > 1 ? size / 2 : size);
  if (outcome == Outcome::kKilledAfter) kill(getpid(), SIGKILL);
  return moved;
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

#define OPEN(NAME)                                \
  int NAME(const char* path, int flags, ...) {    \
    va_list arguments;                            \
    va_start(arguments, flags);                   \
    const mode_t mode = ModeOf(flags, arguments); \
    va_end(arguments);                            \
    return OpenAt(AT_FDCWD, path, flags, mode);   \
  }
OPEN(open)
OPEN(open64)
#define OPEN_AT(NAME)                                      \
  int NAME(int folder, const char* path, int flags, ...) { \
    va_list arguments;                                     \
    va_start(arguments, flags);                            \
    const mode_t mode = ModeOf(flags, arguments);          \
    va_end(arguments);                                     \
    return OpenAt(folder, path, flags, mode);              \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

int close(int fd) {
  if (fd >= 0 && fd < 1024) TheFaults().watched[fd] = false;
  return Real<int(int)>("close")(fd);
}
ssize_t read(int fd, void* to, size_t size) {
  return Move(fd, 'r', size,
              [&](size_t n) { return Real<ssize_t(int, void*, size_t)>("read")(fd, to, n); });
}
ssize_t write(int fd, const void* from, size_t size) {
  return Move(fd, 'w', size, [&](size_t n) {
    return Real<ssize_t(int, const void*, size_t)>("write")(fd, from, n);
  });
}
ssize_t sendfile(int out, int in, off_t* offset, size_t size) {
  return Move(out, 'w', size, [&](size_t n) {
    return Real<ssize_t(int, int, off_t*, size_t)>("sendfile")(out, in, offset, n);
  });
}
int fsync(int fd) {
  return Watched(Lies(fd), 's', [&] { return Real<int(int)>("fsync")(fd); });
}
int fdatasync(int fd) {
  return Watched(Lies(fd), 's', [&] { return Real<int(int)>("fdatasync")(fd); });
}
int rename(const char* from, const char* to) noexcept {
  return Watched(Lies(to), 'n',
                 [&] { return Real<int(const char*, const char*)>("rename")(from, to); });
}
int link(const char* from, const char* to) noexcept {
  return Watched(Lies(to), 'l',
                 [&] { return Real<int(const char*, const char*)>("link")(from, to); });
}
int symlink(const char* target, const char* path) noexcept {
  return Watched(Lies(path), 'l',
                 [&] { return Real<int(const char*, const char*)>("symlink")(target, path); });
}
int mkdir(const char* path, mode_t mode) noexcept {
  return Watched(Lies(path), 'm',
                 [&] { return Real<int(const char*, mode_t)>("mkdir")(path, mode); });
}
int unlink(const char* path) noexcept {
  return Watched(Lies(path), 'u', [&] { return Real<int(const char*)>("unlink")(path); });
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  return Watched(Lies(path, folder), 'u',
                 [&] { return Real<int(int, const char*, int)>("unlinkat")(folder, path, flags); });
}
int remove(const char* path) noexcept {
  return Watched(Lies(path), 'u', [&] { return Real<int(const char*)>("remove")(path); });
}
DIR* opendir(const char* path) {
  return Watched(Lies(path), 'd', [&] { return Real<DIR*(const char*)>("opendir")(path); });
}
int closedir(DIR* folder) {
  TheFaults().watched[dirfd(folder)] = false;  // whose number another file may take
  return Real<int(DIR*)>("closedir")(folder);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (!TheFaults().below.empty() && Meet('t') == Outcome::kFails) return errno;
  return Real<Create>("pthread_create")(thread, attributes, body, argument);
}

}  // extern "C"
