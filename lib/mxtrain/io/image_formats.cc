// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/image_formats.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "mxtrain/base/text.h"

namespace mxtrain::io {
namespace {

constexpr std::string_view kOtherEndings[] = {".heic", ".heif", ".avif", ".jp2", ".jxl", ".dng",
                                              ".cr2",  ".cr3",  ".nef",  ".arw", ".psd"};

std::string EndingOf(std::string_view path) {
  return Lower(std::filesystem::path(path).extension().string());
}

bool Has(const ImageFormatInfo& info, const std::string& ending) {
  return std::find(info.endings.begin(), info.endings.end(), ending) != info.endings.end();
}

}  // namespace

std::span<const ImageFormatInfo> ImageFormats() {
  using enum ImageFormat;
  static const std::vector<ImageFormatInfo> formats = {
      {kJpeg, "JPEG", {".jpg", ".jpeg", ".jpe", ".jfif"}},
      {kPng, "PNG", {".png"}},
      {kBmp, "BMP", {".bmp", ".dib"}},
      {kTga, "TGA", {".tga"}},
      {kPnm, "PNM", {".pnm", ".ppm", ".pgm", ".pbm"}},
      {kGif, "GIF", {".gif"}},
      {kWebp, "WebP", {".webp"}},
      {kTiff, "TIFF", {".tif", ".tiff"}},
  };
  return formats;
}

std::string_view NameOf(ImageFormat format) {
  return ImageFormats()[static_cast<size_t>(format)].name;
}

std::string ImageFormatNames() {
  std::string names;
  const auto formats = ImageFormats();
  for (size_t i = 0; i < formats.size(); ++i) {
    if (i > 0) names += i + 1 < formats.size() ? ", " : " or ";
    names += formats[i].name;
  }
  return names;
}

bool HasEndingOf(ImageFormat format, std::string_view path) {
  return Has(ImageFormats()[static_cast<size_t>(format)], EndingOf(path));
}

bool HasImageEnding(std::string_view path) {
  const std::string ending = EndingOf(path);
  return std::any_of(ImageFormats().begin(), ImageFormats().end(),
                     [&](const ImageFormatInfo& info) { return Has(info, ending); });
}

bool HasOtherImageEnding(std::string_view path) {
  return std::ranges::find(kOtherEndings, EndingOf(path)) != std::end(kOtherEndings);
}

}  // namespace mxtrain::io
