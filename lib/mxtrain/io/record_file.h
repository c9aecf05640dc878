// SPDX-License-Identifier: Apache-2.0
#pragma once
// MXNet's RecordIO: a file of records, each any bytes (image_record.h: of images). Numbers are
// little-endian. A record is stored in one or more parts:
//
//   u32 magic      0xced7230a
//   u32 flag << 29 | length   flag 0: the whole record; 1, 2, 3: the first, a middle, the last part
//   length bytes
//   0 to 3 zero bytes, up to a multiple of 4
//
// Where the magic occurs in the bytes of a record, at a multiple of 4, it ends a part and is left
// out; readers put it back. Beside NAME.rec there may be
//
//   NAME.idx       key, tab, offset of each record, a line each
//   NAME.rec.sums  (ours) "mxtrain-record-sums 1 RECORDS BYTES CHECKSUM", of the file and of the
//                  lines that follow, one for each record: its offset, and the checksum (XXH3-64,
//                  16 hexadecimal digits) of its bytes as stored, with headers and padding
//
// Errors are kData, with the file, the number of the record (from 0) and its offset in bytes.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/file.h"
#include "mxtrain/base/macros.h"

namespace mxtrain::io {

// "a/train.rec" with the ending ".idx" is "a/train.idx".
MXTRAIN_API std::string BesideRecords(const std::string& path, const std::string& ending);
MXTRAIN_API std::string SumsOfRecords(const std::string& path);

// Immutable after construction: every call may come from any thread.
class MXTRAIN_API RecordReader {
 public:
  class File;  // the open file; defined in the source
  // Finds all records by their headers, a small read for each part. The .idx and the sums, if they
  // are there, must be of this file. Throws kFileSystem for a file that cannot be read.
  explicit RecordReader(const std::string& path);
  ~RecordReader();
  RecordReader(RecordReader&&) noexcept;

  const std::string& path() const;
  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }
  // Of a record in the file, in bytes; offset(size()) is the end of the file.
  uint64_t offset(int64_t index) const { return begins_[static_cast<size_t>(index)]; }
  bool has_sums() const { return !sums_.empty(); }

  // The bytes of a record, compared with their checksum if there are sums; reuses the memory of
  // *bytes.
  void Read(int64_t index, std::string* bytes) const;
  // Its first bytes, `most` or a few more; all if it has no more. Not compared.
  void ReadBegin(int64_t index, size_t most, std::string* bytes) const;
  // "train.rec: record 17 at byte 4096", for messages.
  std::string Place(int64_t index) const;

 private:
  std::unique_ptr<const File> file_;
  std::vector<uint64_t> begins_;  // of the records, and the end of the file
  std::vector<uint64_t> sums_;    // of the records, or empty
};

// Writes NAME.rec, NAME.idx (keys are the numbers of the records) and the sums. None is there
// before Commit.
class MXTRAIN_API RecordWriter {
 public:
  explicit RecordWriter(const std::string& path);
  // Adds a record; returns its offset. Throws kData for a part of 512 MiB or more.
  uint64_t Write(std::string_view bytes);
  // Replaces files of these names. Nothing may be written afterwards.
  void Commit();
  uint64_t bytes() const { return bytes_; }  // written so far

 private:
  void WritePart(uint32_t flag, std::string_view part, RunningChecksum* sum);

  FileWriter file_;
  uint64_t bytes_ = 0;
  std::vector<uint64_t> begins_, sums_;
};

// What is damaged in a file, a sentence each. All records are read, compared with their checksums,
// and given to `check`, which throws kData; its `place` names the record. Where a header is
// damaged, searching continues at the next one, or at the next offset of the sums. `stop` ends it
// early.
struct RecordDamages {
  int64_t records = 0;
  bool has_sums = false;  // without, changed bytes of records are not found
  std::vector<std::string> damages;
};
using RecordCheck =
    std::function<void(std::string_view bytes, const std::function<std::string()>& place)>;
MXTRAIN_API RecordDamages VerifyRecords(const std::string& path, const RecordCheck& check = {},
                                        const std::function<bool()>& stop = {});

}  // namespace mxtrain::io
