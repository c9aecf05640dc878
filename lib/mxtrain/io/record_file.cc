// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/io/internal/little_endian.h"
#include "mxtrain/io/internal/record_index.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kRecordMagic = 0xced7230a;
constexpr std::string_view kRecordMagicBytes = "\x0a\x23\xd7\xce";
constexpr size_t kPartHeader = 8;  // bytes: magic, flag and length
constexpr uint64_t kLongestPart = (uint64_t{1} << 29) - 1;

using RecordPlace = std::function<std::string()>;

// Of a length, with the zero bytes behind.
uint64_t PaddedLength(uint64_t length) {
  return (length + 3) / 4 * 4;
}

enum RecordFlag : uint32_t { kWholeRecord, kFirstPart, kMiddlePart, kLastPart };

struct RecordPart {
  uint32_t flag = 0;
  uint64_t length = 0;
  bool is_last() const { return flag == kWholeRecord || flag == kLastPart; }
};

// `begin`: of the part, in the file. `rest`: the bytes of the file, or of the record, behind the
// header.
RecordPart ParsePart(std::string_view header, bool first, uint64_t begin, uint64_t rest,
                     const RecordPlace& place) {
  const uint32_t magic = LittleEndian(header, 0, 4), word = LittleEndian(header, 4, 4);
  const RecordPart part{word >> 29, word & kLongestPart};
  if (magic != kRecordMagic) {
    Throw(ErrorKind::kData,
          "{}: expected the magic number {:#010x} of RecordIO at byte {}, got "
          "{:#010x}",
          place(), kRecordMagic, begin, magic);
  }
  const bool begins = part.flag == kWholeRecord || part.flag == kFirstPart;
  if (part.flag > kLastPart || begins != first) {
    Throw(ErrorKind::kData, "{}: expected flag {} in the header at byte {}, got {}", place(),
          first ? "0 or 1, of the beginning of a record," : "2 or 3, of a further part,", begin,
          part.flag);
  }
  if (PaddedLength(part.length) > rest) {
    Throw(ErrorKind::kData,
          "{}: the header at byte {} says {} bytes, but {} are left; the file is cut off, or the "
          "header damaged",
          place(), begin, part.length, rest);
  }
  return part;
}

// Makes the bytes of a record of those that are stored, its parts, in their place. These may be the
// beginning of `whole` bytes.
void JoinParts(std::string* bytes, uint64_t begin, uint64_t whole, const RecordPlace& place) {
  size_t at = 0, made = 0;
  for (bool first = true; at + kPartHeader <= bytes->size(); first = false) {
    const RecordPart part = ParsePart(std::string_view(*bytes).substr(at, kPartHeader), first,
                                      begin + at, whole - at - kPartHeader, place);
    at += kPartHeader;
    if (!first) {
      std::copy(kRecordMagicBytes.begin(), kRecordMagicBytes.end(), bytes->data() + made);
      made += kRecordMagicBytes.size();
    }
    const size_t length = std::min(static_cast<size_t>(part.length), bytes->size() - at);
    std::memmove(bytes->data() + made, bytes->data() + at, length);
    made += length;
    at += std::min(static_cast<size_t>(PaddedLength(part.length)), bytes->size() - at);
    if (part.is_last()) break;
  }
  if (bytes->size() == whole && at != whole) {
    Throw(ErrorKind::kData, "{}: its parts end at byte {}, but it ended at byte {} when opened",
          place(), begin + at, begin + whole);
  }
  bytes->resize(made);
}

// Bytes as stored, against their checksum.
void CheckSum(std::string_view stored, uint64_t sum, const std::string& path,
              const RecordPlace& place) {
  if (Checksum(stored) == sum) return;
  Throw(ErrorKind::kData,
        "{}: its {} bytes are not those written: their checksum is not that in {}", place(),
        stored.size(), SumsOfRecords(path));
}

// Whether a call throws neither kData nor kFileSystem (a disk that fails), whose message becomes
// one of the damages.
template <typename Call>
bool TellDamage(std::vector<std::string>* damages, const Call& call) {
  try {
    call();
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
    damages->emplace_back(error.what());
    return false;
  }
}

std::string PartHeader(uint32_t flag, size_t length) {
  std::string header(kRecordMagicBytes);
  PutLittleEndian(flag << 29 | static_cast<uint32_t>(length), 4, &header);
  return header;
}

}  // namespace

// A regular file, read anywhere by any thread.
class RecordReader::File {
 public:
  explicit File(const std::string& path) : path_(path), file_(path, O_RDONLY | O_NONBLOCK, "open") {
    struct stat info {};
    if (fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode))
      Throw(ErrorKind::kFileSystem, "cannot read {}: it is not a regular file", path);
    size_ = static_cast<uint64_t>(info.st_size);
  }

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // The bytes from `begin` up to `end`, which the file had when it was opened.
  void ReadAt(uint64_t begin, uint64_t end, std::string* bytes) const {
    bytes->resize(static_cast<size_t>(end - begin));
    for (size_t done = 0; done < bytes->size();) {
      const ssize_t n = pread(file_.get(), bytes->data() + done, bytes->size() - done,
                              static_cast<off_t>(begin + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) Throw(ErrorKind::kFileSystem, "cannot read {}: {}", path_, ReasonOf(errno));
      if (n == 0) {
        Throw(ErrorKind::kData, "{}: it ends at byte {}, but had {} bytes when it was opened",
              path_, begin + done, size_);
      }
      done += static_cast<size_t>(n);
    }
  }

  // The end of the record that begins there, by its headers.
  uint64_t EndOfRecord(uint64_t begin, int64_t number) const {
    const auto place = [&] { return PlaceOfRecord(path_, number, begin); };
    std::string header;
    for (uint64_t at = begin;;) {
      if (size_ - at < kPartHeader) {
        Throw(ErrorKind::kData, "{}: the file ends at byte {}, in a header of {} bytes", place(),
              size_, kPartHeader);
      }
      ReadAt(at, at + kPartHeader, &header);
      const RecordPart part = ParsePart(header, at == begin, at, size_ - at - kPartHeader, place);
      at += kPartHeader + PaddedLength(part.length);
      if (part.is_last()) return at;
    }
  }

  // Where a header may begin a record, from a multiple of 4 on; the end of the file if nowhere.
  uint64_t NextRecord(uint64_t from) const {
    constexpr uint64_t kMost = uint64_t{1} << 20;  // bytes read at once
    std::string window;
    uint64_t length = 16;
    for (uint64_t at = from; at + kPartHeader <= size_; at += length) {
      length = std::min(4 * length, kMost);
      ReadAt(at, std::min(at + length + kPartHeader, size_), &window);
      for (size_t i = 0; i + kPartHeader <= window.size() && i < length; i += 4) {
        if (LittleEndian(window, i, 4) == kRecordMagic && LittleEndian(window, i + 4, 4) >> 29 <= 1)
          return at + i;
      }
    }
    return size_;
  }

 private:
  const std::string path_;
  const FileDescriptor file_;
  uint64_t size_ = 0;
};

RecordReader::RecordReader(const std::string& path) : file_(std::make_unique<File>(path)) {
  std::optional<RecordSums> sums = ReadRecordSums(path);
  if (sums && sums->bytes != file_->size()) {
    Throw(
        ErrorKind::kData,
        "{}: it has {} bytes, but {} when its checksums were written; if that is right, remove {}",
        path, file_->size(), sums->bytes, SumsOfRecords(path));
  }
  for (uint64_t begin = 0; begin < file_->size();) {
    const size_t i = begins_.size();
    begins_.push_back(begin);
    begin = file_->EndOfRecord(begin, static_cast<int64_t>(i));
    if (!sums || (i < sums->begins.size() && sums->End(i) == begin)) continue;
    Throw(ErrorKind::kData, "{}: by its header it ends at byte {}, which is not as {} has it",
          PlaceOfRecord(path, static_cast<int64_t>(i), begins_.back()), begin, SumsOfRecords(path));
  }
  CheckRecordIndex(path, begins_);
  begins_.push_back(file_->size());
  if (sums) sums_ = std::move(sums->sums);
}

RecordReader::~RecordReader() = default;
RecordReader::RecordReader(RecordReader&&) noexcept = default;

const std::string& RecordReader::path() const {
  return file_->path();
}

std::string RecordReader::Place(int64_t index) const {
  return PlaceOfRecord(path(), index, offset(index));
}

void RecordReader::Read(int64_t index, std::string* bytes) const {
  const uint64_t begin = offset(index), end = offset(index + 1);
  const auto place = [&] { return Place(index); };
  file_->ReadAt(begin, end, bytes);
  if (has_sums()) CheckSum(*bytes, sums_[static_cast<size_t>(index)], path(), place);
  JoinParts(bytes, begin, end - begin, place);
}

void RecordReader::ReadBegin(int64_t index, size_t most, std::string* bytes) const {
  const uint64_t begin = offset(index), whole = offset(index + 1) - begin;
  // Parts have more bytes in the file than in the record.
  for (uint64_t stored = uint64_t{most} + kPartHeader;; stored *= 2) {
    stored = std::min(stored, whole);
    file_->ReadAt(begin, begin + stored, bytes);
    JoinParts(bytes, begin, whole, [&] { return Place(index); });
    if (bytes->size() >= most || stored == whole) return;
  }
}

RecordWriter::RecordWriter(const std::string& path) : file_(path) {}

uint64_t RecordWriter::Write(std::string_view bytes) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    if (bytes.substr(at, 4) != kRecordMagicBytes) continue;
    parts.push_back(bytes.substr(begin, at - begin));
    begin = at + 4;
  }
  parts.push_back(bytes.substr(begin));
  for (const std::string_view part : parts) {
    if (part.size() <= kLongestPart) continue;
    Throw(ErrorKind::kData, "{}: a part of {} bytes; RecordIO has at most {}",
          PlaceOfRecord(file_.path(), std::ssize(begins_), bytes_), part.size(), kLongestPart);
  }
  begins_.push_back(bytes_);
  RunningChecksum sum;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool first = i == 0, last = i + 1 == parts.size();
    WritePart(first ? (last ? kWholeRecord : kFirstPart) : (last ? kLastPart : kMiddlePart),
              parts[i], &sum);
  }
  sums_.push_back(sum.value());
  return begins_.back();
}

void RecordWriter::WritePart(uint32_t flag, std::string_view part, RunningChecksum* sum) {
  const std::string header = PartHeader(flag, part.size()),
                    padding(static_cast<size_t>(PaddedLength(part.size())) - part.size(), '\0');
  for (const std::string_view piece : {std::string_view(header), part, std::string_view(padding)}) {
    file_.Write(piece);
    sum->Add(piece);
    bytes_ += piece.size();
  }
}

void RecordWriter::Commit() {
  const std::string index_file = BesideRecords(file_.path(), ".idx"),
                    sums_file = SumsOfRecords(file_.path());
  // Where this ends between two of them, those of a file that is replaced are told not to be of
  // this one.
  file_.Commit();
  WriteFileAtomically(index_file, RecordIndexText(begins_));
  WriteFileAtomically(sums_file, RecordSumsText({bytes_, begins_, sums_}));
}

RecordDamages VerifyRecords(const std::string& path, const RecordCheck& check,
                            const std::function<bool()>& stop) {
  const RecordReader::File file(path);
  RecordDamages result;
  std::optional<RecordSums> sums;
  TellDamage(&result.damages, [&] { sums = ReadRecordSums(path); });
  result.has_sums = fs::exists(SumsOfRecords(path));
  if (sums && sums->bytes != file.size()) {
    result.damages.push_back(format("{}: it has {} bytes, but {} when its checksums were written",
                                    path, file.size(), sums->bytes));
  }
  std::vector<uint64_t> begins;
  std::string bytes;
  bool headers_sound = true;
  const auto known = [&] { return sums && begins.size() < sums->begins.size(); };
  for (uint64_t begin = 0, end = 0; begin < file.size(); begin = end) {
    if (stop && stop()) return result;
    const auto place = [&] { return PlaceOfRecord(path, result.records, begin); };
    end = known() ? sums->End(begins.size()) : 0;
    const bool whole = TellDamage(&result.damages, [&] {
      if (end > file.size()) {
        Throw(ErrorKind::kData, "{}: the file ends at byte {}, before its end at byte {}", place(),
              file.size(), end);
      }
      if (end == 0) end = file.EndOfRecord(begin, result.records);
      file.ReadAt(begin, end, &bytes);
      if (known()) CheckSum(bytes, sums->sums[begins.size()], path, place);
      JoinParts(&bytes, begin, end - begin, place);
      if (check) check(bytes, place);
    });
    if (!whole && end == 0) {
      headers_sound = false;
      end = file.NextRecord(begin + 4);
    }
    begins.push_back(begin);
    ++result.records;
  }
  if (known()) {
    result.damages.push_back(format("{}: missing at its end: {} of {}", path,
                                    Counted(sums->begins.size() - begins.size(), "record"),
                                    sums->begins.size()));
  }
  // Behind a damaged header, where records begin is known by the sums alone.
  if ((sums && !known()) || (!sums && headers_sound))
    TellDamage(&result.damages, [&] { CheckRecordIndex(path, begins); });
  return result;
}

}  // namespace mxtrain::io
