// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>

#include "mxtrain/base/error.h"
#include "mxtrain/io/internal/image_codecs.h"
#include "mxtrain/io/internal/stb_reader.h"

// Only these formats: its other readers have known holes.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_ONLY_TGA
#define STBI_ONLY_PNM
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS 65535
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb_image.h>
#pragma GCC diagnostic pop

namespace mxtrain::io {
namespace {

// The two parts of a file as one stream.
class Stream {
 public:
  explicit Stream(const CheckedFile& file) : parts_{file.header, file.rest} {}

  stbi_io_callbacks Callbacks() const {
    return {[](void* stream, char* to, int size) {
              return static_cast<Stream*>(stream)->Take(to, static_cast<size_t>(size));
            },
            [](void* stream, int size) {
              static_cast<Stream*>(stream)->Take(nullptr, static_cast<size_t>(std::max(0, size)));
            },
            [](void* stream) { return static_cast<int>(static_cast<Stream*>(stream)->Ended()); }};
  }

 private:
  // To nowhere if `to` is null. Returns how many bytes there were.
  int Take(char* to, size_t size) {
    size_t taken = 0;
    for (std::string_view& part : parts_) {
      const size_t count = std::min(size - taken, part.size());
      if (to && count > 0) std::memcpy(to + taken, part.data(), count);
      part.remove_prefix(count);
      taken += count;
    }
    return static_cast<int>(taken);
  }
  bool Ended() const { return parts_[0].empty() && parts_[1].empty(); }

  std::string_view parts_[2];
};

}  // namespace

std::optional<Refusal> DecodeWithStb(const CheckedFile& file, const ImageInfo& info, Image* image) {
  Stream stream(file);
  const stbi_io_callbacks callbacks = stream.Callbacks();
  int width = 0, height = 0, channels = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_callbacks(&callbacks, &stream, &width, &height, &channels, 0),
      stbi_image_free);
  if (!pixels) {
    const std::string_view reason = stbi_failure_reason();
    if (reason == "outofmem")
      Throw(ErrorKind::kMemory, "no memory to decode a {}", NameOf(info.format));
    return Damaged(info.format, reason);
  }
  if (width != info.width || height != info.height) return Damaged(info.format, "another size");
  image->Resize(height, width, channels);
  std::copy_n(pixels.get(), image->pixels.size(), image->pixels.begin());
  return std::nullopt;
}

}  // namespace mxtrain::io
