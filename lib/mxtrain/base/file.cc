// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/file.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>

#include "mxtrain/base/error.h"
#include "mxtrain/base/stream_path.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBeside = ".tmp-";  // followed by the number of the writing process
constexpr size_t kLongestName = 255;           // of Linux file systems
constexpr size_t kPiece = size_t{64} << 10;
// Bytes of a stored block, the most that deflate copies at once.
constexpr size_t kLongestRun = 65'535;

[[noreturn]] void Fail(const char* verb, const std::string& path, int error) {
  // Not the file's fault: no reason to take it for a bad example.
  const bool exhausted = error == EMFILE || error == ENFILE || error == ENOMEM;
  Throw(exhausted ? ErrorKind::kMemory : ErrorKind::kFileSystem, "cannot {} {}: {}", verb, path,
        ReasonOf(error));
}

// The system ends a path at its first NUL.
const std::string& WithoutNul(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    Throw(ErrorKind::kFileSystem, "invalid path '{}...': it contains a NUL character",
          path.c_str());
  return path;
}

int OpenOrFail(const std::string& path, int flags, const char* verb, const std::string& called) {
  const int fd = open(WithoutNul(path).c_str(), flags | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd >= 0) return fd;
  if (errno == ELOOP && (flags & O_NOFOLLOW) != 0) {
    Throw(ErrorKind::kFileSystem,
          "cannot {} {}: it is a symbolic link, which is not allowed here; remove it", verb,
          called);
  }
  Fail(verb, called, errno);
}

const char* NameOfKind(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISLNK(mode)  ? "a symbolic link"
                          : "a device";
}

[[noreturn]] void RefuseKind(const char* verb, const std::string& path, mode_t mode) {
  Throw(ErrorKind::kFileSystem, "cannot {} {}: it is {}{}", verb, path, NameOfKind(mode),
        S_ISDIR(mode) ? "" : ", not a regular file");
}

// A pipe opened without blocking looks ended until its first writer arrives. Waits for the writer
// and makes later reads block.
void AwaitWriter(int fd, const std::string& path) {
  pollfd readable{fd, POLLIN, 0};
  // Also fails on a signal that asks the program to end.
  if (poll(&readable, 1, -1) < 0) Fail("read", path, errno);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// PATH.tmp-PROCESS, truncated if the name would be too long. An existing file of that name can only
// be a leftover of a killed process with our number. It is removed; if it is a link, its target is
// not touched.
std::string FreeNameBeside(const std::string& path) {
  const std::string suffix = format("{}{}", kBeside, getpid());
  const fs::path whole(WithoutNul(path));
  const std::string name = whole.filename().string();
  const std::string beside =
      (whole.parent_path() / (name.substr(0, kLongestName - suffix.size()) + suffix)).string();
  unlink(beside.c_str());
  return beside;
}

// A rename would replace /dev/null, or the link /dev/stdout, by a regular file.
const std::string& ReplaceableByFile(const std::string& path) {
  struct stat info {};
  if (stat(WithoutNul(path).c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    RefuseKind("write", path, info.st_mode);
  if (IsStream(path))
    Throw(ErrorKind::kFileSystem, "cannot write {}: it is a stream of a process, not a file", path);
  return path;
}

// The file has no other name (hard link), or does not exist.
const std::string& OnlyNameOfItsFile(const std::string& path) {
  struct stat info {};
  if (lstat(WithoutNul(path).c_str(), &info) != 0) return path;
  if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) RefuseKind("write", path, info.st_mode);
  if (S_ISREG(info.st_mode) && info.st_nlink > 1) WriteFileAtomically(path, ReadFile(path));
  return path;
}

int64_t SizeOfRegular(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) Fail("write", path, errno);
  if (!S_ISREG(info.st_mode)) RefuseKind("write", path, info.st_mode);
  return info.st_size;
}

// Makes a name survive a power failure. Some file systems cannot sync a folder; there the guarantee
// is theirs.
void SyncFolder(const std::string& folder) {
  const FileDescriptor directory(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, "open");
  if (fsync(directory.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    Fail("sync", folder, errno);
}

// The size of the contents according to the last four bytes of a gzip file (modulo 2^32, of its
// last member).
size_t SizeAtEnd(std::string_view packed) {
  if (packed.size() < 4) return 0;
  size_t size = 0;
  for (size_t i = 1; i <= 4; ++i)
    size = size << 8 | static_cast<unsigned char>(packed[packed.size() - i]);
  // Limited by the best possible deflate ratio: a damaged file must not allocate memory at will.
  constexpr size_t kMostPerByte = 1032;
  return std::min(size, packed.size() * kMostPerByte);
}

bool IsGzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b") && bytes.size() > 2;
}

// The contents of consecutive gzip members. Of contents with more than `max_bytes`, returns the
// first ones if `begin_only`, else throws.
std::string Unpack(const std::string& path, std::string_view packed, size_t max_bytes,
                   bool begin_only) {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> unpacker(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!unpacker) Throw(ErrorKind::kMemory, "cannot decompress {}: out of memory", path);
  std::string bytes;
  // libdeflate writes from the front, so a buffer that is too small ends up filled, but for the
  // block or match that did not fit.
  const size_t most = max_bytes + (begin_only ? kLongestRun : 0);
  size_t done = 0, room = SizeAtEnd(packed);
  while (!packed.empty() && !(begin_only && done >= max_bytes)) {
    bytes.resize(std::min(done + room, most));
    size_t used = 0, made = 0;
    const libdeflate_result result =
        libdeflate_gzip_decompress_ex(unpacker.get(), packed.data(), packed.size(),
                                      bytes.data() + done, bytes.size() - done, &used, &made);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
      if (bytes.size() == most && begin_only) {
        done = most;
        break;
      }
      if (bytes.size() == most)
        Throw(ErrorKind::kData, "{} decompresses to more than {} bytes", path, max_bytes);
      room = 2 * room + packed.size();
      continue;
    }
    if (result != LIBDEFLATE_SUCCESS)
      Throw(ErrorKind::kData, "{} is damaged: its gzip data are truncated or fail the checksum",
            path);
    packed.remove_prefix(used);
    done += made;
  }
  bytes.resize(std::min(done, max_bytes));
  return bytes;
}

}  // namespace

std::string ReasonOf(int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  const char* remedy =
      full ? "; free some space there"
      : error == EFBIG
          ? "; the file size limit was reached (ulimit -f, or that of the file system); raise it"
      : error == EMFILE ? "; raise the limit (ulimit -n)"
                        : "";
  return format("{}{}", std::strerror(error), remedy);
}

FileDescriptor::FileDescriptor(const std::string& path, int flags, const char* verb,
                               const std::string& called)
    : fd_(OpenOrFail(path, flags, verb, called.empty() ? path : called)) {}
FileDescriptor::~FileDescriptor() {
  close(fd_);
}

FileReader::FileReader(std::string path, Readable readable)
    : path_(std::move(path)), file_(path_, O_RDONLY | O_NONBLOCK, "open") {
  struct stat info {};
  if (fstat(file_.get(), &info) != 0) Fail("read", path_, errno);
  if (S_ISREG(info.st_mode)) {
    size_ = static_cast<uint64_t>(info.st_size);
  } else if (readable == Readable::kFileOrPipe &&
             (S_ISFIFO(info.st_mode) || isatty(file_.get()) != 0)) {
    AwaitWriter(file_.get(), path_);
  } else {
    RefuseKind("read", path_, info.st_mode);
  }
}

size_t FileReader::Read(std::span<char> to) {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t n = read(file_.get(), to.data() + done, to.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("read", path_, errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void FileReader::Rewind() {
  if (lseek(file_.get(), 0, SEEK_SET) != 0) Fail("read", path_, errno);
}

std::string ReadFile(const std::string& path, size_t max_bytes, Readable readable) {
  FileReader file(path, readable);
  // The size alone is not a bound: a file may grow meanwhile, and files in /proc report 0.
  const auto check = [&](uint64_t bytes) {
    if (bytes > max_bytes)
      Throw(ErrorKind::kData, "{} has more than {} bytes, the limit for reading", path, max_bytes);
  };
  check(file.size());
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  bytes.resize(file.Read(bytes));
  for (char more[kPiece];;) {
    const size_t n = file.Read(more);
    bytes.append(more, n);
    check(bytes.size());
    if (n < sizeof more) return bytes;
  }
}

std::string ReadMaybeGzip(const std::string& path, size_t max_bytes, Readable readable) {
  // Gzip enlarges incompressible data a little.
  const size_t most_packed = max_bytes + max_bytes / 1000 + kPiece;
  std::string packed = ReadFile(path, most_packed, readable);
  if (!IsGzip(packed)) {
    if (packed.size() > max_bytes)
      Throw(ErrorKind::kData, "{} has {} bytes; the limit is {}", path, packed.size(), max_bytes);
    return packed;
  }
  return Unpack(path, packed, max_bytes, /*begin_only=*/false);
}

std::string ReadBeginMaybeGzip(const std::string& path, size_t max_bytes) {
  FileReader file(path);
  std::string begin(3, '\0');
  begin.resize(file.Read(begin));
  if (IsGzip(begin)) return Unpack(path, ReadFile(path), max_bytes, /*begin_only=*/true);
  begin.resize(static_cast<size_t>(std::min<uint64_t>(file.size(), max_bytes)));
  file.Rewind();
  begin.resize(file.Read(begin));
  return begin;
}

FileWriter::FileWriter(std::string path)
    : path_(ReplaceableByFile(path)),
      beside_(FreeNameBeside(path_)),
      file_(beside_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "write", path_) {}

FileWriter::~FileWriter() {
  if (!committed_) unlink(beside_.c_str());
}

void FileWriter::Write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kPiece) Flush();
  if (bytes.size() < kPiece) {
    buffer_ += bytes;
  } else if (!WriteAll(file_.get(), bytes)) {
    Fail("write", path_, errno);
  }
}

void FileWriter::Flush() {
  if (!WriteAll(file_.get(), buffer_)) Fail("write", path_, errno);
  buffer_.clear();
}

void FileWriter::Commit() {
  Flush();
  if (fsync(file_.get()) != 0) Fail("sync", path_, errno);
  RenameFile(beside_, path_);
  committed_ = true;
  SyncFolder(fs::path(path_).parent_path().string());
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  FileWriter file(path);
  file.Write(bytes);
  file.Commit();
}

FileAppender::FileAppender(std::string path, Begin begin)
    : path_(begin == Begin::kNew ? path : OnlyNameOfItsFile(path)),
      file_(path_,
            O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
                (begin == Begin::kNew ? O_EXCL : 0),
            "open"),
      size_(SizeOfRegular(file_.get(), path_)) {}

void FileAppender::Append(std::string_view bytes) {
  if (WriteAll(file_.get(), bytes)) {
    size_ += static_cast<int64_t>(bytes.size());
    return;
  }
  const int error = errno;
  // Half a line would corrupt the next one after a resume.
  static_cast<void>(ftruncate(file_.get(), size_) + 1);
  Fail("write", path_, error);
}

void FileAppender::Sync() {
  if (fsync(file_.get()) != 0) Fail("sync", path_, errno);
}

void RenameFile(const std::string& from, const std::string& to) {
  if (rename(WithoutNul(from).c_str(), WithoutNul(to).c_str()) != 0)
    Throw(ErrorKind::kFileSystem, "cannot rename {} to {}: {}", from, to, ReasonOf(errno));
}

void MakeFolders(const std::string& path) {
  std::error_code error;
  fs::create_directories(WithoutNul(path), error);
  if (error)
    Throw(ErrorKind::kFileSystem, "cannot create the folder {}: {}", path, ReasonOf(error.value()));
}

void MakeOwnFolder(const std::string& path) {
  if (mkdir(WithoutNul(path).c_str(), 0777) == 0) return;
  const int error = errno;
  struct stat info {};
  if (error != EEXIST || lstat(path.c_str(), &info) != 0) Fail("create the folder", path, error);
  if (!S_ISDIR(info.st_mode)) {
    Throw(ErrorKind::kFileSystem, "cannot create the folder {}: {} is in its place; remove it",
          path, S_ISREG(info.st_mode) ? "a file" : NameOfKind(info.st_mode));
  }
}

bool ReplaceLink(const std::string& target, const std::string& path) {
  struct stat info {};
  if (lstat(WithoutNul(path).c_str(), &info) == 0 && !S_ISLNK(info.st_mode)) return false;
  const std::string beside = FreeNameBeside(path);
  if (symlink(target.c_str(), beside.c_str()) != 0) return false;
  if (rename(beside.c_str(), path.c_str()) == 0) return true;
  unlink(beside.c_str());
  return false;
}

int RemoveAbandonedFiles(const std::string& folder) {
  int removed = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const size_t at = name.rfind(kBeside);
    const fs::file_type type = entry.symlink_status(ignored).type();
    if (at == std::string::npos ||
        (type != fs::file_type::regular && type != fs::file_type::symlink))
      continue;
    pid_t process = 0;
    const char *begin = name.data() + at + kBeside.size(), *end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(begin, end, process);
    if (error != std::errc() || rest != end || process <= 0) continue;
    const bool gone = kill(process, 0) != 0 && errno == ESRCH;
    if (gone && fs::remove(entry.path(), ignored)) ++removed;
  }
  return removed;
}

struct RunningChecksum::State {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash{XXH3_createState(),
                                                                             XXH3_freeState};
};

RunningChecksum::RunningChecksum() : state_(std::make_unique<State>()) {
  if (!state_->hash || XXH3_64bits_reset(state_->hash.get()) != XXH_OK)
    Throw(ErrorKind::kMemory, "out of memory for a checksum");
}
RunningChecksum::~RunningChecksum() = default;
void RunningChecksum::Add(std::string_view bytes) {
  XXH3_64bits_update(state_->hash.get(), bytes.data(), bytes.size());
}
uint64_t RunningChecksum::value() const {
  return XXH3_64bits_digest(state_->hash.get());
}

uint64_t Checksum(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint32_t Crc32(std::string_view bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

}  // namespace mxtrain
