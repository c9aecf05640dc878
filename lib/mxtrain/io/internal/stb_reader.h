// SPDX-License-Identifier: Apache-2.0
#pragma once
// stb_image behind our checks. It reads BMP, TGA and binary PNM of 8 bits, but takes bytes that are
// missing for zeros, and misreads some forms (decision 0079 lists them). So the readers of these
// formats check the whole file, and hand it over with a header that they write themselves, in a
// form that stb_image reads right. Private to image_*.cc.
#include "mxtrain/io/image.h"

namespace mxtrain::io {

// A file in two parts: the header written anew, and the rest, which is part of the file or was
// unpacked from it. Every byte that the header promises must exist.
struct CheckedFile {
  std::string header;
  std::string_view rest;
};

// *image gets the channels of the file: gray, gray and alpha, RGB or RGBA. Throws kMemory.
std::optional<Refusal> DecodeWithStb(const CheckedFile& file, const ImageInfo& info, Image* image);

}  // namespace mxtrain::io
