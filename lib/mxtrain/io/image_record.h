// SPDX-License-Identifier: Apache-2.0
#pragma once
// What im2rec stores of an image as a record (record_file.h): the file of the image behind its
// labels. Numbers are little-endian:
//
//   u32 flag         the number of labels behind this header, or 0: the one in it
//   f32 label
//   u64 id, u64 id2  the number of the image; 0
//   flag x f32       labels
//   the bytes of a JPEG, a PNG, ...
//
// Errors are kData.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

struct ImageRecord {
  std::vector<float> labels;
  uint64_t id = 0, id2 = 0;
  std::string_view image;  // into the bytes of the record
};
inline constexpr size_t kImageRecordHeader = 24;  // bytes

// The bytes may be the beginning of a record, with all of its labels. `place` names it in messages.
MXTRAIN_API ImageRecord ParseImageRecord(std::string_view bytes,
                                         const std::function<std::string()>& place);
// The bytes before the image, by the first kImageRecordHeader ones; those of a header if there are
// fewer.
MXTRAIN_API uint64_t BytesBeforeImage(std::string_view bytes);
// One label is stored in the header, several behind it. Throws kData without labels.
MXTRAIN_API std::string ImageRecordBytes(const ImageRecord& record);

}  // namespace mxtrain::io
