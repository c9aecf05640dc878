// SPDX-License-Identifier: Apache-2.0
#pragma once
// Access to the file system. Input is a regular file, checked without blocking. Output is either
// seen whole or not at all (FileWriter), or grows by complete records (FileAppender). Neither
// follows symbolic links when writing. Errors are kFileSystem with path and reason, unless a
// function says otherwise. An object serves one thread at a time.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Why a system call failed (errno), with the remedy if there is a standard one: "No space left on
// device; free some space there".
MXTRAIN_API std::string ReasonOf(int error);

// Owns an open file and closes it.
class MXTRAIN_API FileDescriptor {
 public:
  // Throws "cannot VERB PATH: REASON", with `called` in place of the path if given. `flags` as for
  // open(2); child processes do not inherit the file. If `flags` forbid following links, the error
  // says that the path ends in a symbolic link.
  FileDescriptor(const std::string& path, int flags, const char* verb,
                 const std::string& called = "");
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// What a path to read may refer to. Pipes and terminals are for paths that the user names, as in
// `mxtrain train <(...)`; paths found in a folder or in a list must be files. Folders, other
// devices and sockets are never readable.
enum class Readable { kFile, kFileOrPipe };

// A file read in chunks from its beginning.
class MXTRAIN_API FileReader {
 public:
  // Does not block, except for the first writer of a pipe.
  explicit FileReader(std::string path, Readable readable = Readable::kFile);
  const std::string& path() const { return path_; }
  // Size of the file when it was opened; 0 for a pipe.
  uint64_t size() const { return size_; }
  // As many bytes as fit into `to`; fewer only at the end of the file.
  size_t Read(std::span<char> to);
  void Rewind();  // to the beginning of the same file, even if it was renamed since; not for pipes

 private:
  std::string path_;
  FileDescriptor file_;
  uint64_t size_ = 0;
};

// A whole file in memory; kData if it has more than `max_bytes`.
MXTRAIN_API std::string ReadFile(const std::string& path,
                                 size_t max_bytes = std::numeric_limits<size_t>::max(),
                                 Readable readable = Readable::kFile);
// As ReadFile, decompressed if the bytes are gzip: kData if they are damaged or decompress to more
// than `max_bytes`.
MXTRAIN_API std::string ReadMaybeGzip(const std::string& path, size_t max_bytes,
                                      Readable readable = Readable::kFile);
// The first `max_bytes` of that, or all if there are less; decompresses no more than these. The
// checksum of a gzip member is only checked if it is decompressed whole.
MXTRAIN_API std::string ReadBeginMaybeGzip(const std::string& path, size_t max_bytes);

// A file that others see whole or not at all. It is written next to its destination as
// NAME.tmp-PROCESS, opened exclusively, and renamed at the end. An existing file or symbolic link
// of that name is replaced; a folder, a pipe or a device is not.
class MXTRAIN_API FileWriter {
 public:
  explicit FileWriter(std::string path);
  ~FileWriter();  // without Commit: removes what was written
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  const std::string& path() const { return path_; }

  void Write(std::string_view bytes);
  // Syncs the file, renames it, and syncs its folder. Nothing may be written afterwards.
  void Commit();

 private:
  void Flush();

  const std::string path_, beside_;
  const FileDescriptor file_;
  std::string buffer_;
  bool committed_ = false;
};

// FileWriter for bytes in memory.
MXTRAIN_API void WriteFileAtomically(const std::string& path, std::string_view bytes);

// An append-only file that others read while it grows: a log. It never opens a symbolic link. A
// file with further hard links (as in a backup) is first copied, so that the other names keep their
// contents.
class MXTRAIN_API FileAppender {
 public:
  enum class Begin { kContinue, kNew };  // kNew: the name must be free
  explicit FileAppender(std::string path, Begin begin = Begin::kContinue);
  const std::string& path() const { return path_; }
  // Appends all of the bytes or, as far as the file system allows truncation, none.
  void Append(std::string_view bytes);
  int64_t size() const { return size_; }  // in bytes, with what the file held before
  void Sync();                            // returns when everything appended is on disk

 private:
  const std::string path_;
  const FileDescriptor file_;
  int64_t size_;  // of the complete records
};

// Gives a file another name in the same file system; a file or link of that name is replaced.
MXTRAIN_API void RenameFile(const std::string& from, const std::string& to);
// Creates the folder and its parents if they do not exist.
MXTRAIN_API void MakeFolders(const std::string& path);
// Creates a folder inside an existing one. If the name exists it must be a folder itself, not a
// link to one.
MXTRAIN_API void MakeOwnFolder(const std::string& path);
// Creates a symbolic link to `target` at `path`, replacing an existing link. Returns false and
// changes nothing if `path` is anything else or the file system has no links.
MXTRAIN_API bool ReplaceLink(const std::string& target, const std::string& path);

// Removes from a folder the files NAME.tmp-PROCESS that FileWriter left in processes that no longer
// run. Returns their number; 0 if the folder does not exist. Processes of other machines are
// invisible: call it only if one machine writes there.
MXTRAIN_API int RemoveAbandonedFiles(const std::string& folder);

// XXH3-64 of the bytes.
MXTRAIN_API uint64_t Checksum(std::string_view bytes);
// CRC-32 of the bytes, that of gzip and zip.
MXTRAIN_API uint32_t Crc32(std::string_view bytes);
// The same for bytes that arrive in pieces.
class MXTRAIN_API RunningChecksum {
 public:
  RunningChecksum();
  ~RunningChecksum();
  RunningChecksum(const RunningChecksum&) = delete;
  RunningChecksum& operator=(const RunningChecksum&) = delete;
  void Add(std::string_view bytes);
  uint64_t value() const;  // of all bytes so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mxtrain
