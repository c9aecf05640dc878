#pragma once
// One look at every picture of a data source, on all cores: what its header says, a checksum, and a small fingerprint of what is seen on it.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "mxtrain/io/source.h"

namespace mxtrain::commands {

// The difference hash of a picture (Krawetz, "Kind of Like That", 2013) of 16 x 16 bits: a gray thumbnail of 16 rows of 17 pixels, and for
// each two neighbours in a row whether it gets brighter, by more than noise does. It survives scaling, compression and changes of brightness and contrast.
using ImageHash = std::array<uint64_t, 4>;
int Distance(const ImageHash& a, const ImageHash& b);  // bits that differ

// What was seen of a record. Of several pictures the header is that of the first, and there is no hash;
// nor is there one of a picture under 48 pixels, on which too little is seen.
struct ImageFacts {
  bool readable = false;  // the rest means nothing without it
  uint64_t checksum = 0;  // of the bytes of files, of the pixels of decoded pictures
  int height = 0, width = 0;
  int channels = 0;     // of the file: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA or CMYK
  bool cmyk = false;
  int orientation = 1;  // EXIF
  std::optional<ImageHash> hash;
};

// Facts of each record; empty where records hold no pictures. `stop` is asked before each picture, `on_image` called after it; both from
// several threads. Records that cannot be read are not readable; other errors are thrown.
std::vector<ImageFacts> ScanImages(const io::Source& source, const std::function<bool()>& stop, const std::function<void()>& on_image);

// Whether two pictures whose hashes are near are one: the correlation of their thumbnails is at least 0.98. Records that cannot be read any more
// are not, nor are pictures without contrast.
bool LookAlike(const io::Source& a, int64_t index_a, const io::Source& b, int64_t index_b);

}  // namespace mxtrain::commands
