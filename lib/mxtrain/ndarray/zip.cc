// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/internal/zip.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/ndarray/internal/refuse_file.h"

namespace mxtrain {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kLocator64Bytes = 20;
constexpr uint64_t kMostComment = 0xffff;
constexpr uint32_t kWide = 0xffffffff;  // the number is in the extra field
constexpr uint16_t kWideField = 1;
constexpr uint16_t kEncrypted = 1;              // flag
constexpr uint16_t kStored = 0, kDeflated = 8;  // methods

std::string_view Part(std::string_view bytes, uint64_t at, uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at)
    RefuseFile("the zip archive is damaged: a part of it is outside the file");
  return bytes.substr(at, size);
}

template <typename T>
T Get(std::string_view bytes, uint64_t at) {
  T value;
  std::memcpy(&value, Part(bytes, at, sizeof value).data(), sizeof value);
  return value;
}

void RequireSignature(std::string_view bytes, uint64_t at, uint32_t signature) {
  if (Get<uint32_t>(bytes, at) != signature)
    RefuseFile("the zip archive is damaged at byte {}: a header is missing", at);
}

// Of the record that ends an archive, behind which there is only a comment.
uint64_t FindEnd(std::string_view bytes) {
  for (uint64_t tail = kEndBytes;
       tail <= std::min<uint64_t>(bytes.size(), kEndBytes + kMostComment); ++tail) {
    const uint64_t at = bytes.size() - tail;
    if (Get<uint32_t>(bytes, at) == kEnd && Get<uint16_t>(bytes, at + 20) == tail - kEndBytes)
      return at;
  }
  RefuseFile("the zip archive has no directory at its end; the file is truncated");
}

struct Directory {
  uint64_t begin, bytes, count;
};

Directory FindDirectory(std::string_view bytes) {
  const uint64_t end = FindEnd(bytes);
  if (end < kLocator64Bytes || Get<uint32_t>(bytes, end - kLocator64Bytes) != kLocator64) {
    return {Get<uint32_t>(bytes, end + 16), Get<uint32_t>(bytes, end + 12),
            Get<uint16_t>(bytes, end + 10)};
  }
  const auto wide = Get<uint64_t>(bytes, end - kLocator64Bytes + 8);
  RequireSignature(bytes, wide, kEnd64);
  const std::string_view record = bytes.substr(wide);
  return {Get<uint64_t>(record, 48), Get<uint64_t>(record, 40), Get<uint64_t>(record, 32)};
}

// A number of a central header, from its extra field if it does not fit into 32 bits; `fields` is
// what the numbers before it left of that.
uint64_t Widened(uint32_t narrow, std::string_view* fields) {
  if (narrow != kWide) return narrow;
  const auto wide = Get<uint64_t>(*fields, 0);
  fields->remove_prefix(sizeof wide);
  return wide;
}

std::string_view WideFields(std::string_view extra) {
  while (extra.size() >= 4) {
    const std::string_view field = Part(extra, 4, Get<uint16_t>(extra, 2));
    if (Get<uint16_t>(extra, 0) == kWideField) return field;
    extra.remove_prefix(4 + field.size());
  }
  return {};
}

// An entry with its name and where its local header begins.
struct Place {
  uint64_t begin;
  std::string_view name;
  ZipArchive::Entry entry;
};

// Reads the first header of a directory and removes it. `bytes`: those before the directory.
Place ReadPlace(std::string_view bytes, std::string_view* directory) {
  const std::string_view header = *directory;
  RequireSignature(header, 0, kCentral);
  Place place{};
  ZipArchive::Entry& entry = place.entry;
  entry.flags = Get<uint16_t>(header, 8);
  entry.method = Get<uint16_t>(header, 10);
  entry.crc = Get<uint32_t>(header, 16);
  const auto name_bytes = Get<uint16_t>(header, 28), extra_bytes = Get<uint16_t>(header, 30),
             comment_bytes = Get<uint16_t>(header, 32);
  place.name = Part(header, kCentralBytes, name_bytes);
  std::string_view wide = WideFields(Part(header, kCentralBytes + name_bytes, extra_bytes));
  entry.size = Widened(Get<uint32_t>(header, 24), &wide);
  const uint64_t packed = Widened(Get<uint32_t>(header, 20), &wide);
  place.begin = Widened(Get<uint32_t>(header, 42), &wide);
  directory->remove_prefix(
      Part(header, 0, kCentralBytes + name_bytes + extra_bytes + comment_bytes).size());

  Part(bytes, place.begin, kLocalBytes);
  const std::string_view local = bytes.substr(place.begin);
  RequireSignature(local, 0, kLocal);
  const auto local_name_bytes = Get<uint16_t>(local, 26);
  if (Part(local, kLocalBytes, local_name_bytes) != place.name)
    RefuseFile("the zip archive is damaged: entry {} has another name in its directory",
               QuotedName(place.name));
  entry.bytes = Part(local, kLocalBytes + local_name_bytes + Get<uint16_t>(local, 28), packed);
  return place;
}

}  // namespace

ZipArchive::ZipArchive(std::string_view bytes) {
  const Directory found = FindDirectory(bytes);
  std::string_view directory = Part(bytes, found.begin, found.bytes);
  std::vector<Place> places;
  for (uint64_t i = 0; i < found.count; ++i) {
    places.push_back(ReadPlace(bytes.substr(0, found.begin), &directory));
    if (!entries_.emplace(places.back().name, places.back().entry).second)
      RefuseFile("the zip archive has two entries {}", QuotedName(places.back().name));
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < places.size(); ++i) {
    const std::string_view before = places[i - 1].entry.bytes;
    if (before.data() + before.size() > bytes.data() + places[i].begin)
      RefuseFile("the entries {} and {} of the zip archive overlap", QuotedName(places[i - 1].name),
                 QuotedName(places[i].name));
  }
}

std::string_view ZipArchive::Read(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) RefuseFile("the zip archive has no entry {}", QuotedName(name));
  const ZipArchive::Entry& entry = found->second;
  if (entry.flags & kEncrypted)
    RefuseFile("entry {} of the zip archive is encrypted", QuotedName(name));
  if (entry.method != kStored) {
    RefuseFile(
        "entry {} of the zip archive is compressed ({}), which torch.save does not do; unpack it "
        "and pack it again uncompressed (zip -0)",
        QuotedName(name),
        entry.method == kDeflated ? "deflate" : format("method {}", entry.method));
  }
  if (entry.size != entry.bytes.size())
    RefuseFile("entry {} of the zip archive has {} bytes, its directory says {}", QuotedName(name),
               entry.bytes.size(), entry.size);
  if (Crc32(entry.bytes) != entry.crc)
    RefuseFile("entry {} of the zip archive is damaged: its checksum is wrong", QuotedName(name));
  return entry.bytes;
}

}  // namespace mxtrain
