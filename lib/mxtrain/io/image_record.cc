// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/image_record.h"

#include <bit>

#include "mxtrain/base/error.h"
#include "mxtrain/io/internal/little_endian.h"

namespace mxtrain::io {
namespace {

uint64_t LittleEndian64(std::string_view bytes, size_t at) {
  return uint64_t{LittleEndian(bytes, at + 4, 4)} << 32 | LittleEndian(bytes, at, 4);
}
float FloatAt(std::string_view bytes, size_t at) {
  return std::bit_cast<float>(LittleEndian(bytes, at, 4));
}
void PutFloat(float value, std::string* out) {
  PutLittleEndian(std::bit_cast<uint32_t>(value), 4, out);
}
void PutLittleEndian64(uint64_t value, std::string* out) {
  PutLittleEndian(static_cast<uint32_t>(value), 4, out);
  PutLittleEndian(static_cast<uint32_t>(value >> 32), 4, out);
}

}  // namespace

uint64_t BytesBeforeImage(std::string_view bytes) {
  const uint32_t labels = bytes.size() < 4 ? 0 : LittleEndian(bytes, 0, 4);
  return kImageRecordHeader + uint64_t{4} * labels;
}

ImageRecord ParseImageRecord(std::string_view bytes, const std::function<std::string()>& place) {
  if (bytes.size() < kImageRecordHeader) {
    Throw(ErrorKind::kData, "{}: {}, expected the {} of the header of an image, and the image",
          place(), Counted(bytes.size(), "byte"), kImageRecordHeader);
  }
  const uint64_t image = BytesBeforeImage(bytes);
  if (image > bytes.size()) {
    Throw(ErrorKind::kData, "{}: its header says {}, {} bytes, but {} are left", place(),
          Counted(LittleEndian(bytes, 0, 4), "label"), image - kImageRecordHeader,
          bytes.size() - kImageRecordHeader);
  }
  ImageRecord record;
  for (size_t at = kImageRecordHeader; at < image; at += 4)
    record.labels.push_back(FloatAt(bytes, at));
  if (record.labels.empty()) record.labels.push_back(FloatAt(bytes, 4));
  record.id = LittleEndian64(bytes, 8);
  record.id2 = LittleEndian64(bytes, 16);
  record.image = bytes.substr(static_cast<size_t>(image));
  return record;
}

std::string ImageRecordBytes(const ImageRecord& record) {
  if (record.labels.empty()) Throw(ErrorKind::kData, "an image record has no label");
  const bool one = record.labels.size() == 1;
  std::string bytes;
  PutLittleEndian(one ? 0 : static_cast<uint32_t>(record.labels.size()), 4, &bytes);
  PutFloat(one ? record.labels[0] : 0, &bytes);
  PutLittleEndian64(record.id, &bytes);
  PutLittleEndian64(record.id2, &bytes);
  for (size_t i = 0; !one && i < record.labels.size(); ++i) PutFloat(record.labels[i], &bytes);
  bytes += record.image;
  return bytes;
}

}  // namespace mxtrain::io
