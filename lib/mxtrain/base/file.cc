#include "mxtrain/base/file.h"

#include <fcntl.h>
#include <libdeflate.h>
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

namespace mxtrain {
namespace {

constexpr std::string_view kBeside = ".tmp-";  // and the number of the process that writes

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : path_(path), fd_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) Fail("open");
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }
  [[noreturn]] void Fail(const char* verb) const {
    const int error = errno;
    Throw(ErrorKind::kFileSystem, "cannot {} {}: {}", verb, path_, ReasonOf(error));
  }

 private:
  std::string path_;
  int fd_;
};

// What the last four bytes of a gzip file say about the size of its contents (modulo 2^32, of its last member).
size_t SizeAtEnd(std::string_view packed) {
  if (packed.size() < 4) return 0;
  size_t size = 0;
  for (size_t i = 1; i <= 4; ++i) size = size << 8 | static_cast<unsigned char>(packed[packed.size() - i]);
  // No more than deflate can pack: a damaged file must not take memory.
  constexpr size_t kMostPerByte = 1032;
  return std::min(size, packed.size() * kMostPerByte);
}

// The contents of gzip's members one after the other.
std::string Unpack(const std::string& path, std::string_view packed, size_t max_bytes) {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> unpacker(libdeflate_alloc_decompressor(),
                                                                                              libdeflate_free_decompressor);
  if (!unpacker) Throw(ErrorKind::kMemory, "cannot unpack {}: no memory", path);
  std::string bytes;
  size_t done = 0, room = SizeAtEnd(packed);
  while (!packed.empty()) {
    bytes.resize(std::min(done + room, max_bytes));
    size_t used = 0, made = 0;
    const libdeflate_result result =
        libdeflate_gzip_decompress_ex(unpacker.get(), packed.data(), packed.size(), bytes.data() + done, bytes.size() - done, &used, &made);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
      if (bytes.size() == max_bytes) Throw(ErrorKind::kData, "{} unpacks to more than {} bytes", path, max_bytes);
      room = 2 * room + packed.size();
      continue;
    }
    if (result != LIBDEFLATE_SUCCESS) Throw(ErrorKind::kData, "{} is damaged: its gzip data end early or do not check", path);
    packed.remove_prefix(used);
    done += made;
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

std::string ReasonOf(int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return format("{}{}", std::strerror(error), full ? "; make room there" : "");
}

std::string ReadFile(const std::string& path) {
  Descriptor file(path, O_RDONLY);
  struct stat info {};
  if (fstat(file.fd(), &info) != 0) file.Fail("read");
  if (S_ISDIR(info.st_mode)) Throw(ErrorKind::kFileSystem, "cannot read {}: it is a folder", path);
  std::string bytes;
  bytes.reserve(static_cast<size_t>(info.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(file.fd(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) file.Fail("read");
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
  }
}

std::string ReadMaybeGzip(const std::string& path, size_t max_bytes) {
  std::string packed = ReadFile(path);
  const bool gzip = packed.size() > 2 && packed[0] == '\x1f' && packed[1] == '\x8b';
  if (!gzip) {
    if (packed.size() > max_bytes) Throw(ErrorKind::kData, "{} holds {} bytes; at most {} are read", path, packed.size(), max_bytes);
    return packed;
  }
  return Unpack(path, packed, max_bytes);
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  const std::string beside = path + std::string(kBeside) + std::to_string(getpid());
  try {
    Descriptor file(beside, O_WRONLY | O_CREAT | O_TRUNC);
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = write(file.fd(), bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) file.Fail("write");
      done += static_cast<size_t>(n);
    }
    if (fsync(file.fd()) != 0) file.Fail("sync");
  } catch (...) {
    unlink(beside.c_str());
    throw;
  }
  if (rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(beside.c_str());
    Throw(ErrorKind::kFileSystem, "cannot rename {} to {}: {}", beside, path, ReasonOf(error));
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  Descriptor directory(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  fsync(directory.fd());  // some file systems refuse to sync a folder; the rename is then as safe as they make it
}

int RemoveAbandonedFiles(const std::string& folder) {
  int removed = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const size_t at = name.rfind(kBeside);
    if (at == std::string::npos || !entry.is_regular_file(ignored)) continue;
    pid_t process = 0;
    const char *begin = name.data() + at + kBeside.size(), *end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(begin, end, process);
    if (error != std::errc() || rest != end || process <= 0) continue;
    const bool gone = kill(process, 0) != 0 && errno == ESRCH;
    if (gone && std::filesystem::remove(entry.path(), ignored)) ++removed;
  }
  return removed;
}

uint64_t Checksum(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace mxtrain
