// SPDX-License-Identifier: Apache-2.0
// EXIF orientation: TIFF tag 0x0112 of the first directory, in a JPEG's APP1 segment (CIPA DC-008,
// JEITA CP-3451) or in the EXIF block of another format.
#include <cstddef>
#include <utility>

#include "mxtrain/io/internal/image_codecs.h"

namespace mxtrain::io {
namespace {

// Unsigned numbers of a byte string, in either byte order; 0 beyond the end.
class TiffReader {
 public:
  TiffReader(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}
  uint32_t Read(size_t offset, int size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < static_cast<size_t>(size)) return 0;
    uint32_t value = 0;
    for (int i = 0; i < size; ++i) {
      const int at = big_endian_ ? i : size - 1 - i;
      value = value << 8 | static_cast<unsigned char>(bytes_[offset + static_cast<size_t>(at)]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

// Bytes of a number of this type in the directory's entry; 0 for other types. SHORT is the
// standard's, LONG and their signed brothers are written too.
int SizeOfType(uint32_t type) {
  constexpr uint32_t kByte = 1, kShort = 3, kLong = 4, kSignedShort = 8, kSignedLong = 9;
  if (type == kByte) return 1;
  if (type == kShort || type == kSignedShort) return 2;
  return type == kLong || type == kSignedLong ? 4 : 0;
}

// The samples of an image, as they are to be shown.
template <typename T>
void CopyOriented(int orientation, const Image& stored, const T* from, int height, int width,
                  T* out) {
  const bool swaps = orientation >= 5;
  const int last_y = stored.height - 1, last_x = stored.width - 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      int from_y = swaps ? x : y, from_x = swaps ? y : x;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        from_y = last_y - from_y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        from_x = last_x - from_x;
      const T* pixel = from + (int64_t{from_y} * stored.width + from_x) * int64_t{stored.channels};
      for (int c = 0; c < stored.channels; ++c) *out++ = pixel[c];
    }
  }
}

}  // namespace

int OrientationOfExif(std::string_view block) {
  if (!block.starts_with("II") && !block.starts_with("MM")) return 1;
  const TiffReader reader(block, block[0] == 'M');
  const size_t directory = reader.Read(4, 4);
  const uint32_t entries = reader.Read(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (reader.Read(entry, 2) != 0x0112) continue;
    const uint32_t value = reader.Read(entry + 8, SizeOfType(reader.Read(entry + 2, 2)));
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

void ShowOriented(int orientation, ImageInfo* info) {
  info->orientation = orientation;
  if (orientation >= 5) std::swap(info->height, info->width);
}

int ExifOrientation(std::string_view jpeg) {
  const TiffReader reader(jpeg, true);
  size_t at = 2;  // after the start of image
  while (at + 4 <= jpeg.size()) {
    const uint32_t marker = reader.Read(at + 1, 1);
    // Bytes between segments, as libjpeg skips them: up to 0xff and the code of a marker.
    if (reader.Read(at, 1) != 0xff || marker == 0 || marker == 0xff) {
      ++at;
      continue;
    }
    if (marker == 0xda || marker == 0xd9) break;  // the scan begins: no header follows
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) {  // without a length
      at += 2;
      continue;
    }
    const size_t length = reader.Read(at + 2, 2);
    if (length < 2 || jpeg.size() - at - 2 < length) break;
    const std::string_view segment = jpeg.substr(at + 4, length - 2);
    if (marker == 0xe1 && segment.starts_with(std::string_view("Exif\0\0", 6)))
      return OrientationOfExif(segment.substr(6));
    at += 2 + length;
  }
  return 1;
}

void ApplyOrientation(int orientation, Image* image) {
  if (orientation == 1) return;
  const Image stored = std::move(*image);
  const bool swaps = orientation >= 5;
  const int height = swaps ? stored.width : stored.height,
            width = swaps ? stored.height : stored.width;
  *image = Image();
  if (stored.is_deep()) {
    image->ResizeDeep(height, width, stored.channels);
    CopyOriented(orientation, stored, stored.deep.data(), height, width, image->deep.data());
  } else {
    image->Resize(height, width, stored.channels);
    CopyOriented(orientation, stored, stored.pixels.data(), height, width, image->pixels.data());
  }
}

}  // namespace mxtrain::io
