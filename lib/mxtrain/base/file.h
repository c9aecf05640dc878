#pragma once
// Where the program meets the file system. What is read is a regular file, found out without waiting; what is written is either seen whole or
// not at all (FileWriter), or grows by whole pieces (FileAppender); neither writes to what a symbolic link leads to. Errors are kFileSystem with
// path and reason, unless a function says otherwise. An object serves one thread at a time.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Why a call of the system failed (errno), with what to do about it where that is always the same: "No space left on device; make room there".
MXTRAIN_API std::string ReasonOf(int error);

// An open file, closed at the end.
class MXTRAIN_API FileDescriptor {
 public:
  // Throws "cannot VERB PATH: REASON", with `called` in place of the path where that is given. `flags` of open(2); the file is not handed to
  // programs that are started. A symbolic link at the end of the path is told as such where `flags` say not to follow it.
  FileDescriptor(const std::string& path, int flags, const char* verb, const std::string& called = "");
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// What may stand behind a path that is read. A pipe, or a terminal, is for what the user names, as in `mxtrain train <(...)`; what was found in a
// folder or in a list is a file. Folders, other devices and sockets are never readable.
enum class Readable { kFile, kFileOrPipe };

// A file that is read piece by piece from its beginning.
class MXTRAIN_API FileReader {
 public:
  // Does not wait, but for the first writer of a pipe.
  explicit FileReader(std::string path, Readable readable = Readable::kFile);
  const std::string& path() const { return path_; }
  // Of the file as it was opened; 0 for a pipe.
  uint64_t size() const { return size_; }
  // As many bytes as fit into `to`; fewer only where the file ends.
  size_t Read(std::span<char> to);
  void Rewind();  // to the beginning of the same file, whatever has its name by now; not of a pipe

 private:
  std::string path_;
  FileDescriptor file_;
  uint64_t size_ = 0;
};

// A whole file in memory; kData where it holds more than `max_bytes`.
MXTRAIN_API std::string ReadFile(const std::string& path, size_t max_bytes = std::numeric_limits<size_t>::max(), Readable readable = Readable::kFile);
// As ReadFile, unpacked where the bytes are gzip: kData where they are damaged, or unpack to more than `max_bytes`.
MXTRAIN_API std::string ReadMaybeGzip(const std::string& path, size_t max_bytes, Readable readable = Readable::kFile);

// A file that others see whole or not at all: it is written beside its name, under NAME.tmp-PROCESS, which only this object has opened, and gets
// its name at the end. What had the name until then, a symbolic link too, is replaced; a folder, a pipe or a device is not.
class MXTRAIN_API FileWriter {
 public:
  explicit FileWriter(std::string path);
  ~FileWriter();  // without Commit: removes what was written
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  const std::string& path() const { return path_; }

  void Write(std::string_view bytes);
  // Syncs the file, names it, and syncs its folder. Nothing is written afterwards.
  void Commit();

 private:
  void Flush();

  const std::string path_, beside_;
  const FileDescriptor file_;
  std::string buffer_;
  bool committed_ = false;
};

// FileWriter for bytes that are there already.
MXTRAIN_API void WriteFileAtomically(const std::string& path, std::string_view bytes);

// A file that grows at its end, and is seen while it grows: a log. It has one name: where a symbolic link stands, nothing is opened, and a file
// that has further names (hard links, as in a backup) is first copied, so that those keep what they hold.
class MXTRAIN_API FileAppender {
 public:
  enum class Begin { kContinue, kNew };  // kNew: the name must be free
  explicit FileAppender(std::string path, Begin begin = Begin::kContinue);
  const std::string& path() const { return path_; }
  // All of the bytes or, as far as the file system lets them be taken back, none.
  void Append(std::string_view bytes);

 private:
  const std::string path_;
  const FileDescriptor file_;
  int64_t size_;  // of what has arrived whole
};

// The folder and those above it, where they are not there.
MXTRAIN_API void MakeFolders(const std::string& path);
// A folder of our own inside one that is there: what has this name already must be a folder itself, not a link to one.
MXTRAIN_API void MakeOwnFolder(const std::string& path);
// A symbolic link to `target` at `path`, in place of a link that is there. False, with nothing changed, where something else stands there or the
// file system has no links.
MXTRAIN_API bool ReplaceLink(const std::string& target, const std::string& path);

// Removes from a folder what FileWriter left there when its process was killed: files NAME.tmp-PROCESS of processes that are no more.
// Returns how many; a folder that is not there holds none. Processes of other machines cannot be seen: call it where one machine writes.
MXTRAIN_API int RemoveAbandonedFiles(const std::string& folder);

// XXH3-64 of the bytes.
MXTRAIN_API uint64_t Checksum(std::string_view bytes);
// The same of bytes that come in pieces.
class MXTRAIN_API RunningChecksum {
 public:
  RunningChecksum();
  ~RunningChecksum();
  RunningChecksum(const RunningChecksum&) = delete;
  RunningChecksum& operator=(const RunningChecksum&) = delete;
  void Add(std::string_view bytes);
  uint64_t value() const;  // of all so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mxtrain
