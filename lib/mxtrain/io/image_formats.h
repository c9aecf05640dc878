// SPDX-License-Identifier: Apache-2.0
#pragma once
// The image formats that are read: their names and the endings of their files. The only table of
// them: a folder is scanned by it, and messages and help name the formats from it. A file's format
// is recognized by its content (image.h); its ending only says that it is meant to be an image.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

enum class ImageFormat { kJpeg, kPng, kBmp, kTga, kPnm, kGif, kWebp, kTiff };

struct ImageFormatInfo {
  ImageFormat format;
  std::string_view name;                  // "JPEG"
  std::vector<std::string_view> endings;  // ".jpg", ...: lower case, the usual one first
};

// One entry per format, in the order of the enumeration.
MXTRAIN_API std::span<const ImageFormatInfo> ImageFormats();
MXTRAIN_API std::string_view NameOf(ImageFormat format);
// "JPEG, PNG, BMP, TGA, PNM, GIF, WebP or TIFF"
MXTRAIN_API std::string ImageFormatNames();

// By the ending of a path, in upper or lower case.
MXTRAIN_API bool HasImageEnding(std::string_view path);
MXTRAIN_API bool HasEndingOf(ImageFormat format, std::string_view path);
// That of an image format of cameras or of the web that is not read.
MXTRAIN_API bool HasOtherImageEnding(std::string_view path);

}  // namespace mxtrain::io
