// SPDX-License-Identifier: Apache-2.0
#include "app/report/event_file.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/io/image.h"

namespace mxtrain::report {
namespace {

constexpr size_t kMostPending = size_t{1} << 16;

// The wire format of protocol buffers: fields as (number << 3 | kind), then a varint, 8 or 4 bytes
// little-endian, or a length and bytes.
void PutVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}
template <typename T>
void PutLittleEndian(std::string* out, T value) {
  for (size_t i = 0; i < sizeof value; ++i) *out += static_cast<char>(value >> (8 * i));
}
void PutInteger(std::string* out, int field, int64_t value) {
  PutVarint(out, static_cast<uint64_t>(field) << 3);
  PutVarint(out, static_cast<uint64_t>(value));
}
void PutDouble(std::string* out, int field, double value) {
  PutVarint(out, static_cast<uint64_t>(field) << 3 | 1);
  PutLittleEndian(out, std::bit_cast<uint64_t>(value));
}
void PutFloat(std::string* out, int field, float value) {
  PutVarint(out, static_cast<uint64_t>(field) << 3 | 5);
  PutLittleEndian(out, std::bit_cast<uint32_t>(value));
}
void PutBytes(std::string* out, int field, std::string_view bytes) {
  PutVarint(out, static_cast<uint64_t>(field) << 3 | 2);
  PutVarint(out, bytes.size());
  *out += bytes;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event: wall_time = 1, step = 2.
std::string EventAt(int64_t step) {
  std::string event;
  PutDouble(&event, 1, Now());
  PutInteger(&event, 2, step);
  return event;
}

// TFRecord masks checksums, because a CRC of data that contains a CRC is weak.
uint32_t Masked(uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::string FileName() {
  utsname host{};
  uname(&host);
  return format("events.out.tfevents.{:010}.{}.{}", static_cast<int64_t>(Now()), host.nodename,
                getpid());
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> rows{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t row = i;
      for (int bit = 0; bit < 8; ++bit) row = row >> 1 ^ (row & 1 ? 0x82f63b78u : 0);
      rows[i] = row;
    }
    return rows;
  }();
  uint32_t crc = 0xffffffffu;
  for (char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

EventFile::EventFile(const std::string& folder, int64_t first_step) {
  MakeOwnFolder(folder);
  const std::string name = folder + "/" + FileName();
  std::string path = name;
  for (int again = 1; std::filesystem::exists(path); ++again) path = format("{}.{}", name, again);
  file_.emplace(path, FileAppender::Begin::kNew);
  std::string version = EventAt(0);
  PutBytes(&version, 3, "brain.Event:2");  // file_version
  Write(version);
  if (first_step > 0) {
    std::string session, start = EventAt(first_step + 1);  // events up to `first_step` are kept
    PutInteger(&session, 1, 1);                            // SessionLog: status = START
    PutBytes(&start, 7, session);                          // session_log
    Write(start);
  }
  Flush();
}

void EventFile::Write(const std::string& event) {
  std::string frame;
  PutLittleEndian(&frame, static_cast<uint64_t>(event.size()));
  PutLittleEndian(&frame, Masked(Crc32c(frame)));
  frame += event;
  PutLittleEndian(&frame, Masked(Crc32c(event)));
  pending_ += frame;
  if (pending_.size() >= kMostPending) Flush();
}

void EventFile::AddValue(int64_t step, const std::string& value) {
  std::string summary, event = EventAt(step);
  PutBytes(&summary, 1, value);  // Summary: value
  PutBytes(&event, 5, summary);  // summary
  Write(event);
}

void EventFile::AddScalar(const std::string& tag, int64_t step, double value) {
  std::string fields;  // of Summary.Value
  PutBytes(&fields, 1, tag);
  PutFloat(&fields, 2, static_cast<float>(value));
  AddValue(step, fields);
}

void EventFile::AddPng(const std::string& tag, int64_t step, std::string_view png) {
  const auto info = io::ProbeImage(png);
  if (!info || info->format != io::ImageFormat::kPng)
    Throw(ErrorKind::kData, "the image '{}' is not a PNG", tag);
  std::string image, fields;
  PutInteger(&image, 1, info->height);
  PutInteger(&image, 2, info->width);
  PutInteger(&image, 3, info->channels);  // colorspace: 1 gray, 3 RGB
  PutBytes(&image, 4, png);
  PutBytes(&fields, 1, tag);
  PutBytes(&fields, 4, image);
  AddValue(step, fields);
}

void EventFile::Flush() {
  file_->Append(pending_);
  pending_.clear();
}

}  // namespace mxtrain::report
