// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/error.h"
#include "mxtrain/io/image.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb_image_write.h>
#pragma GCC diagnostic pop

namespace mxtrain::io {

std::string EncodePng(const Image& image) {
  if (image.pixels.empty())
    Throw(ErrorKind::kData, "cannot write an empty image of {}x{} pixels as PNG", image.width,
          image.height);
  std::string bytes;
  const auto append = [](void* to, void* data, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(data),
                                          static_cast<size_t>(size));
  };
  if (!stbi_write_png_to_func(append, &bytes, image.width, image.height, image.channels,
                              image.pixels.data(), 0)) {
    Throw(ErrorKind::kMemory, "cannot write an image of {}x{} pixels as PNG", image.width,
          image.height);
  }
  return bytes;
}

}  // namespace mxtrain::io
