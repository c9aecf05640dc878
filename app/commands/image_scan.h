// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scans every image of a data source, on all cores: header, checksum, and a small fingerprint of
// the content.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "mxtrain/io/source.h"

namespace mxtrain::commands {

// The difference hash of an image (Krawetz, "Kind of Like That", 2013) of 16 x 16 bits: a gray
// thumbnail of 16 rows of 17 pixels, and for each two neighbours in a row, whether the second is
// brighter by more than noise. Invariant to scaling, compression, brightness and contrast.
using ImageHash = std::array<uint64_t, 4>;
int Distance(const ImageHash& a, const ImageHash& b);  // bits that differ

// Facts about a record. With several images, the header is that of the first and there is no hash;
// images under 48 pixels have no hash either.
struct ImageFacts {
  bool readable = false;  // if false, the other members are meaningless
  uint64_t checksum = 0;  // of the bytes of files, of the pixels of decoded images
  int height = 0, width = 0;
  int channels = 0;  // of the file: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA or CMYK
  bool cmyk = false;
  int orientation = 1;  // EXIF
  int bits = 8;         // per channel, 8 or 16
  std::optional<ImageHash> hash;
};

// Facts about each record; empty if records contain no images. Calls `stop` before and `on_image`
// after each image, both from several threads. Unreadable records have readable == false; other
// errors are thrown.
std::vector<ImageFacts> ScanImages(const io::Source& source, const std::function<bool()>& stop,
                                   const std::function<void()>& on_image);

// Whether two images with similar hashes are the same image: the correlation of their thumbnails is
// at least 0.98. False for unreadable records and images without contrast.
bool LookAlike(const io::Source& a, int64_t index_a, const io::Source& b, int64_t index_b);

}  // namespace mxtrain::commands
