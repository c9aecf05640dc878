// SPDX-License-Identifier: Apache-2.0
// RecordIO files: the bytes of the format, and every way to damage a small one.
#include "mxtrain/io/record_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/io/image_record.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_checks.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

using Strings = std::vector<std::string>;

const std::string kMagicBytes = "\x0a\x23\xd7\xce";
const std::string kHello("\x0a\x23\xd7\xce\x05\0\0\0hello\0\0\0", 16);
const std::string kSplit(
    "\x0a\x23\xd7\xce\x04\0\0\x20"
    "abcd"
    "\x0a\x23\xd7\xce\x03\0\0\x60"
    "xyz\0",
    24);

Strings RecordsIn(const std::string& path) {
  const RecordReader reader(path);
  Strings records;
  for (int64_t i = 0; i < reader.size(); ++i) reader.Read(i, &records.emplace_back());
  return records;
}

std::string WriteRecords(const TempDir& dir, const Strings& records,
                         const std::string& name = "a.rec") {
  RecordWriter writer(dir.path(name));
  for (const std::string& record : records) writer.Write(record);
  writer.Commit();
  return dir.path(name);
}

// What is said when the file is opened and all of it is read; "" if nothing. FILE is the path.
std::string WhyNotRead(const std::string& path) {
  std::string why;
  try {
    RecordsIn(path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kData);
    why = error.what();
  }
  for (size_t at; (at = why.find(path)) != std::string::npos;) why.replace(at, path.size(), "FILE");
  return why;
}

// Records with the magic at the places where it may be, and between.
const Strings kRecords = {"hello",
                          "",
                          "abcd" + kMagicBytes + "xyz",
                          kMagicBytes,
                          kMagicBytes + kMagicBytes,
                          "a" + kMagicBytes + "b",
                          "ab" + kMagicBytes,
                          "abc" + kMagicBytes + kMagicBytes + "defgh" + kMagicBytes,
                          kMagicBytes + "abcd" + kMagicBytes,
                          std::string(1, '\0'),
                          kHello + kSplit + kHello};

}  // namespace

TEST_CASE("records are written as the format has them") {
  const TempDir dir;
  const std::string path = WriteRecords(dir, {"hello", "abcd" + kMagicBytes + "xyz"});
  CHECK(ReadFile(path) == kHello + kSplit);
  CHECK(ReadFile(dir.path("a.idx")) == "0\t0\n1\t16\n");
  CHECK(ReadFile(path + ".sums") ==
        format("mxtrain-record-sums 1 2 40 {:016x}\n0 {:016x}\n16 {:016x}\n",
               Checksum(format("0 {:016x}\n16 {:016x}\n", Checksum(kHello), Checksum(kSplit))),
               Checksum(kHello), Checksum(kSplit)));
}

TEST_CASE("records of another program are read, with and without an index") {
  const TempDir dir;
  dir.Write("a.rec", kSplit + kHello);
  CHECK(RecordsIn(dir.path("a.rec")) == Strings{"abcd" + kMagicBytes + "xyz", "hello"});
  dir.Write("a.idx", "7\t24\n3\t0\n");
  const RecordReader reader(dir.path("a.rec"));
  CHECK(reader.size() == 2);
  CHECK(reader.offset(1) == 24);
  CHECK(reader.Place(1) == dir.path("a.rec") + ": record 1 at byte 24");
  CHECK_FALSE(reader.has_sums());
  std::string bytes;
  reader.Read(1, &bytes);
  CHECK(bytes == "hello");
  dir.Write("empty.rec", "");
  CHECK(RecordReader(dir.path("empty.rec")).size() == 0);
}

TEST_CASE("any bytes come back, the magic among them") {
  const TempDir dir;
  Strings records = kRecords;
  for (size_t before = 0; before <= 9; ++before) {
    for (size_t behind = 0; behind <= 5; ++behind)
      records.push_back(std::string(before, 'x') + kMagicBytes + std::string(behind, 'y'));
  }
  const std::string path = WriteRecords(dir, records);
  CHECK(RecordsIn(path) == records);
  CHECK(VerifyRecords(path).damages.empty());
  // The magic is at a multiple of 4 at the beginnings of parts alone.
  const std::string stored = ReadFile(path);
  size_t parts = 0, at = 0;
  for (; at < stored.size(); ++parts) {
    REQUIRE(stored.substr(at, 4) == kMagicBytes);
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(stored[at + 4 + i]); };
    at += 8 + (byte(0) + 256u * byte(1) + 3) / 4 * 4;
  }
  size_t aligned = 0;
  for (size_t i = 0; i < stored.size(); i += 4) aligned += stored.compare(i, 4, kMagicBytes) == 0;
  CHECK(aligned == parts);
}

TEST_CASE("the beginnings of records are those of the whole") {
  const TempDir dir;
  const RecordReader reader(WriteRecords(dir, kRecords));
  for (int64_t i = 0; i < reader.size(); ++i) {
    const std::string& whole = kRecords[static_cast<size_t>(i)];
    for (size_t most = 0; most <= whole.size() + 3; ++most) {
      std::string bytes;
      reader.ReadBegin(i, most, &bytes);
      CHECK(bytes.size() >= std::min(most, whole.size()));
      CHECK(whole.starts_with(bytes));
    }
  }
}

TEST_CASE("several threads read") {
  const TempDir dir;
  Strings records;
  for (size_t i = 0; i < 200; ++i)
    records.push_back(std::string(i * 13 % 97, static_cast<char>(i)));
  const RecordReader reader(WriteRecords(dir, records));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      std::string bytes;
      for (size_t k = 0; k < 2000; ++k) {
        const size_t i = (k * 7 + t * 31) % records.size();
        reader.Read(static_cast<int64_t>(i), &bytes);
        wrong[t] += bytes != records[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("a file that is cut anywhere is refused, with its sums and without") {
  const TempDir dir;
  const std::string path = WriteRecords(dir, kRecords), whole = ReadFile(path),
                    sums = ReadFile(path + ".sums");
  const RecordReader reader(path);
  std::vector<uint64_t> ends;
  for (int64_t i = 0; i <= reader.size(); ++i) ends.push_back(reader.offset(i));
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    dir.Write("cut.rec", whole.substr(0, size));
    dir.Write("cut.rec.sums", sums);
    CHECK(WhyNotRead(dir.path("cut.rec")) ==
          format("FILE: it has {} bytes, but {} when its checksums were written; if that is right, "
                 "remove FILE.sums",
                 size, whole.size()));
    CHECK_FALSE(VerifyRecords(dir.path("cut.rec")).damages.empty());
    dir.Write("bare.rec", whole.substr(0, size));
    const std::string why = WhyNotRead(dir.path("bare.rec"));
    const auto end = std::ranges::find(ends, size);
    if (end != ends.end()) {
      CHECK(why.empty());  // whole records are all that can be told
      continue;
    }
    const auto record = std::ranges::upper_bound(ends, size) - ends.begin() - 1;
    CheckHas(why,
             format("FILE: record {} at byte {}: ", record, ends[static_cast<size_t>(record)]));
  }
}

TEST_CASE("every changed byte is found by the sums, with the record it is in") {
  const TempDir dir;
  const std::string path = WriteRecords(dir, kRecords), whole = ReadFile(path);
  const RecordReader reader(path);
  for (int64_t i = 0; i < reader.size(); ++i) {
    for (uint64_t at = reader.offset(i); at < reader.offset(i + 1); ++at) {
      for (const int change : {0x01, 0x20, 0x80, 0xff}) {
        CAPTURE(at);
        CAPTURE(change);
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ change);
        dir.Write("a.rec", bytes);
        CheckHas(WhyNotRead(path), format("FILE: record {} at byte {}: ", i, reader.offset(i)));
        const RecordDamages found = VerifyRecords(path);
        CHECK(found.records == reader.size());
        REQUIRE(found.damages.size() == 1);
        CheckHas(found.damages[0], format("record {} at byte {}: ", i, reader.offset(i)));
      }
    }
  }
}

TEST_CASE("without sums changed headers are found") {
  const TempDir dir;
  const std::string path = WriteRecords(dir, {"hello", "hello", "abcd" + kMagicBytes + "xyz"});
  std::filesystem::remove(path + ".sums");
  std::filesystem::remove(dir.path("a.idx"));
  const std::string whole = ReadFile(path);
  const auto with = [&](size_t at, const std::string& bytes) {
    dir.Write("a.rec", std::string(whole).replace(at, bytes.size(), bytes));
    return WhyNotRead(path);
  };
  for (size_t i = 0; i < 4; ++i) {
    CHECK(with(16 + i, "!") ==
          format("FILE: record 1 at byte 16: expected the magic number 0xced7230a of RecordIO at "
                 "byte 16, got {:#010x}",
                 (0xced7230a & ~(0xffu << 8 * i)) | uint32_t{'!'} << 8 * i));
  }
  CHECK(with(23, "\x20") ==  // the first part of the next record is no further part of this one
        "FILE: record 1 at byte 16: expected flag 2 or 3, of a further part, in the header at byte "
        "32, got 1");
  for (const auto& [byte, flag] : {std::pair{"\x40", 2}, {"\x60", 3}, {"\x80", 4}, {"\xe0", 7}}) {
    CHECK(
        with(23, byte) ==
        format("FILE: record 1 at byte 16: expected flag 0 or 1, of the beginning of a record, in "
               "the header at byte 16, got {}",
               flag));
  }
  CHECK(with(20, "\x21") ==
        "FILE: record 1 at byte 16: the header at byte 16 says 33 bytes, but 32 are left; the file "
        "is cut off, or the header damaged");
  CheckHas(with(22, "\x01"), "FILE: record 1 at byte 16: the header at byte 16 says 65541 bytes");
  CHECK(with(20, "\x09") ==  // ends in the header of the next one
        "FILE: record 2 at byte 36: expected the magic number 0xced7230a of RecordIO at byte 36, "
        "got 0x20000004");
  CHECK(with(51, "\x40") ==
        "FILE: record 2 at byte 32: the file ends at byte 56, in a header of 8 bytes");
}

TEST_CASE("what is damaged is all told") {
  const TempDir dir;
  const std::string image = ImageRecordBytes({{1}, 0, 0, "png"});
  const std::string path = WriteRecords(dir, {image, image, "short", image, image}),
                    whole = ReadFile(path);
  const auto texts = [&](const std::string& bytes) {
    dir.Write("a.rec", bytes);
    Strings found;
    for (const std::string& damage : VerifyRecords(path, ParseImageRecord).damages)
      found.push_back(damage.substr(path.size()));
    return found;
  };
  const std::string no_image =
      ": record 2 at byte 72: 5 bytes, expected the 24 of the header of an image, and the image";
  CHECK(texts(whole) == Strings{no_image});
  const auto changed = [&](const std::vector<size_t>& places) {
    std::string bytes = whole;
    for (const size_t at : places) bytes[at] = '!';
    return bytes;
  };
  const std::string not_written =
      " bytes are not those written: their checksum is not that in " + path + ".sums";
  CHECK(texts(changed({0, 100})) == Strings{": record 0 at byte 0: its 36" + not_written, no_image,
                                            ": record 3 at byte 88: its 36" + not_written});
  CHECK(texts(whole.substr(0, 124)) ==
        Strings{": it has 124 bytes, but 160 when its checksums were written", no_image,
                ": missing at its end: 1 record of 5"});
  // Without sums, from a damaged header to the next one.
  std::filesystem::remove(path + ".sums");
  CHECK(texts(changed({0, 100})) ==
        Strings{": record 0 at byte 0: expected the magic number 0xced7230a of RecordIO at byte 0, "
                "got 0xced72321",
                no_image});
  CHECK(texts("none at all") ==
        Strings{": record 0 at byte 0: expected the magic number 0xced7230a "
                "of RecordIO at byte 0, got 0x656e6f6e"});
  int calls = 0;
  dir.Write("a.rec", whole);
  CHECK(VerifyRecords(path, {}, [&calls] { return ++calls == 3; }).records == 2);
}

TEST_CASE("an index of other records is refused") {
  const TempDir dir;
  dir.Write("a.rec", kHello + kSplit + kHello);
  const auto why = [&](const std::string& index) {
    dir.Write("a.idx", index);
    std::string text = WhyNotRead(dir.path("a.rec"));
    for (size_t at; (at = text.find(dir.path("a.idx"))) != std::string::npos;)
      text.replace(at, dir.path("a.idx").size(), "INDEX");
    return text;
  };
  CHECK(why("0\t0\n1\t16\n2\t40\n").empty());
  CHECK(why("0\t0\r\nb\t16\r\n\r\nc\t40").empty());
  CHECK(why("0\t0\n1\t16\n2\t44\n") == "INDEX:3: no record of FILE begins at byte 44");
  CHECK(why("0\t0\n1\t28\n2\t40\n") == "INDEX:2: no record of FILE begins at byte 28");
  CHECK(why("0\t0\n1\t16\n2\t16\n") ==
        "INDEX:3: a second line for the record at byte 16, as in line 2");
  CHECK(why("0\t0\n2\t40\n") ==
        "INDEX: it has 2 lines, but FILE has 3 records: no line for FILE: record 1 at byte 16; "
        "without the index, all are found");
  CHECK(why("") ==
        "INDEX: it has 0 lines, but FILE has 3 records: no line for FILE: record 0 at byte 0; "
        "without the index, all are found");
  for (const char* line : {"7", "0\t", "0\t-1", "0\t1x", "0\t1\t2", "0\t99999999999999999999"})
    CheckHas(why(std::string(line) + "\n"), "INDEX:1: expected a key, a tab and an offset, got '");
  CHECK(VerifyRecords(dir.path("a.rec")).damages.back().starts_with(dir.path("a.idx") + ":1: "));
}

TEST_CASE("a file of sums that is damaged, or of another file, is refused") {
  const TempDir dir;
  const std::string path = WriteRecords(dir, {"hello", "you"}), sums = ReadFile(path + ".sums");
  for (size_t at = 0; at < sums.size(); ++at) {
    CAPTURE(at);
    std::string bytes = sums;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x04);
    dir.Write("a.rec.sums", bytes);
    CHECK_FALSE(WhyNotRead(path).empty());
    CHECK_FALSE(VerifyRecords(path).damages.empty());
    dir.Write("a.rec.sums", sums.substr(0, at));
    CHECK_FALSE(WhyNotRead(path).empty());
  }
  dir.Write("a.rec.sums", "");
  CHECK(WhyNotRead(path) ==
        "FILE.sums: it does not begin as a file of checksums of records; without the file, records "
        "are read unchecked");
  const std::string other = WriteRecords(dir, {"helloyou!", ""}, "b.rec");
  CHECK(ReadFile(other).size() == ReadFile(path).size());
  dir.Write("a.rec.sums", ReadFile(other + ".sums"));
  CHECK(WhyNotRead(path) ==
        "FILE: record 0 at byte 0: by its header it ends at byte 16, which is not as FILE.sums has "
        "it");
}

TEST_CASE("nothing is there before it is complete, and what is replaced leaves nothing") {
  const TempDir dir;
  {
    RecordWriter writer(dir.path("a.rec"));
    CHECK(writer.Write("hello") == 0);
    CHECK(writer.Write("you") == 16);
    CHECK(writer.bytes() == 28);
  }
  CHECK(std::filesystem::is_empty(dir.path()));
  WriteRecords(dir, {"hello"});
  const std::string path = WriteRecords(dir, {"other", "words"});
  CHECK(RecordsIn(path) == Strings{"other", "words"});
  CHECK(RecordReader(path).has_sums());
  CheckHas(MessageOf([&] { RecordReader{dir.path("none.rec")}; }), dir.path("none.rec"));
  CHECK(MessageOf([&] { RecordReader{dir.path()}; }) ==
        "cannot read " + dir.path() + ": it is not a regular file");
}

TEST_CASE("the records of images are im2rec's") {
  const std::string header("\0\0\0\0\0\0\xe0\x40\x2a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
  const auto place = [] { return std::string("HERE"); };
  CHECK(ImageRecordBytes({{7}, 42, 0, "\xff\xd8"}) == header + "\xff\xd8");
  const ImageRecord one = ParseImageRecord(header + "\xff\xd8", place);
  CHECK(one.labels == std::vector<float>{7});
  CHECK(one.id == 42);
  CHECK(one.id2 == 0);
  CHECK(one.image.size() == 2);

  const std::vector<float> labels = {2, 5, 1, 0.25f, -1e-9f};
  const uint64_t large = 0xfedcba9876543210;
  const std::string bytes = ImageRecordBytes({labels, large, large + 1, "image"});
  CHECK(bytes.substr(0, 8) == std::string("\x05\0\0\0\0\0\0\0", 8));
  CHECK(BytesBeforeImage(bytes) == 24 + 20);
  const ImageRecord several = ParseImageRecord(bytes, place);
  CHECK(several.labels == labels);
  CHECK(several.id == large);
  CHECK(several.id2 == large + 1);
  CHECK(several.image == "image");

  for (size_t size = 0; size < 24 + 20; ++size) {
    CheckHas(MessageOf([&] { ParseImageRecord(bytes.substr(0, size), place); }),
             size < 24
                 ? format("HERE: {}, expected the 24 of", Counted(size, "byte"))
                 : format("HERE: its header says 5 labels, 20 bytes, but {} are left", size - 24));
  }
  CheckHas(MessageOf([&] { ParseImageRecord("\xff\xff\xff\xff" + header.substr(4), place); }),
           "its header says 4294967295 labels");
}
