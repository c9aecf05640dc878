// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files, read by the test's own decoder.
#include "app/report/event_file.h"

#include <doctest/doctest.h>

#include <bit>
#include <map>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/io/image.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::report {
namespace {

uint64_t LittleEndian(const std::string& bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes.at(at + i));
  return value;
}

// CRC-32C bit by bit, straight from its polynomial.
uint32_t SlowCrc(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const uint32_t out = (crc ^ static_cast<uint8_t>(c) >> bit) & 1;
      crc = crc >> 1 ^ (out ? 0x82f63b78u : 0);
    }
  }
  return ~crc;
}

uint32_t Unmasked(uint64_t masked) {
  const uint32_t rotated = static_cast<uint32_t>(masked) - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

// The records of a TFRecord file; fails the test on a wrong length or checksum.
std::vector<std::string> Records(const std::string& file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    const size_t length = LittleEndian(file, at, 8);
    REQUIRE(at + 16 + length <= file.size());
    CHECK(Unmasked(LittleEndian(file, at + 8, 4)) == SlowCrc(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    CHECK(Unmasked(LittleEndian(file, at + 12 + length, 4)) == SlowCrc(records.back()));
    at += 16 + length;
  }
  return records;
}

// Fields of a message of protocol buffers: by number, numbers and bytes alike as text of their raw
// bits.
struct Message {
  std::map<int, uint64_t> numbers;
  std::map<int, std::string> bytes;
};
Message Parse(const std::string& text) {
  Message message;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(text.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < text.size()) {
    const uint64_t key = varint();
    const int field = static_cast<int>(key >> 3);
    switch (key & 7) {
      case 0:
        message.numbers[field] = varint();
        break;
      case 1:
        message.numbers[field] = LittleEndian(text, at, 8), at += 8;
        break;
      case 5:
        message.numbers[field] = LittleEndian(text, at, 4), at += 4;
        break;
      case 2: {
        const size_t length = varint();
        message.bytes[field] = text.substr(at, length), at += length;
        break;
      }
      default:
        FAIL("wire type ", key & 7);
    }
  }
  return message;
}

}  // namespace

TEST_CASE("CRC-32C of known texts") {
  CHECK(Crc32c("") == 0);
  CHECK(Crc32c("123456789") == 0xe3069283u);            // the check value of the catalogue of CRCs
  CHECK(Crc32c(std::string(32, '\0')) == 0x8a9136aau);  // RFC 3720, B.4
  CHECK(Crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
}

TEST_CASE("an event file holds its version, then scalars and images, each framed and summed") {
  const test::TempDir dir;
  std::string path;
  {
    EventFile file(dir.path("tb"), 300);
    file.AddScalar("train/loss", 300, 0.25);
    file.AddScalar("val/accuracy", int64_t{1} << 40, -1.5);
    file.AddPng("samples", 7, io::EncodePng(io::Image{2, 3, 1, {0, 50, 100, 150, 200, 250}, {}}));
    CHECK_THROWS_WITH(file.AddPng("other", 7, "no image"), "the image 'other' is not a PNG");
    file.Flush();
    path = file.path();
  }
  CHECK(path.find("events.out.tfevents.") != std::string::npos);
  const std::vector<std::string> records = Records(ReadFile(path));
  REQUIRE(records.size() == 5);
  CHECK(Parse(records[0]).bytes.at(3) == "brain.Event:2");
  CHECK(std::bit_cast<double>(Parse(records[0]).numbers.at(1)) > 1.6e9);  // seconds since 1970
  CHECK(Parse(records[1]).numbers.at(2) == 301);
  // A session starts: later steps in older files are obsolete.
  CHECK(Parse(Parse(records[1]).bytes.at(7)).numbers.at(1) == 1);

  const auto value = [&](size_t i) {
    return Parse(Parse(Parse(records[i]).bytes.at(5)).bytes.at(1));
  };
  CHECK(Parse(records[2]).numbers.at(2) == 300);
  CHECK(value(2).bytes.at(1) == "train/loss");
  CHECK(std::bit_cast<float>(static_cast<uint32_t>(value(2).numbers.at(2))) == 0.25F);
  CHECK(Parse(records[3]).numbers.at(2) == uint64_t{1} << 40);
  CHECK(std::bit_cast<float>(static_cast<uint32_t>(value(3).numbers.at(2))) == -1.5F);
  const Message image = Parse(value(4).bytes.at(4));
  CHECK(image.numbers.at(1) == 2);
  CHECK(image.numbers.at(2) == 3);
  const auto decoded = io::DecodeImage(image.bytes.at(4));
  REQUIRE(decoded);
  CHECK(decoded->pixels == std::vector<uint8_t>{0, 50, 100, 150, 200, 250});
}

TEST_CASE("a second file within one second has another name; a full disk is reported") {
  const test::TempDir dir;
  const EventFile a(dir.path("tb"), 0), b(dir.path("tb"), 0);
  CHECK(a.path() != b.path());
  dir.Write("file", "");
  CHECK_THROWS(EventFile(dir.path("file"), 0));
}

}  // namespace mxtrain::report
