// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes of image files, written by the formats' specifications, and images to put into them.
// Programs that use it link zlib.
#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "mxtrain/base/philox.h"
#include "mxtrain/io/image.h"
#include "tests/support/text_checks.h"

namespace mxtrain::test {

// Every value occurs, neighbours differ.
inline io::Image Pattern(int height, int width, int channels) {
  io::Image image;
  image.Resize(height, width, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(i * 37 + i / 7);
  return image;
}

inline io::Image Noise(int height, int width, int channels, uint64_t seed = 1) {
  io::Image image;
  image.Resize(height, width, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(PhiloxAt(seed, 2, 3, i) >> 24);
  return image;
}

// Smooth: JPEG loses little.
inline io::Image Gradient(int height, int width, int channels) {
  io::Image image;
  image.Resize(height, width, channels);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width * channels; ++x) {
      image.row(y)[x] = static_cast<uint8_t>(20 + 200 * (y + x / channels) / (height + width) +
                                             10 * (x % channels));
    }
  }
  return image;
}

inline int LargestDifference(const io::Image& a, const io::Image& b) {
  REQUIRE(a.pixels.size() == b.pixels.size());
  int most = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i)
    most = std::max(most, std::abs(a.pixels[i] - b.pixels[i]));
  return most;
}

inline std::string Number(uint32_t value, int bytes, bool big_endian) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> 8 * (big_endian ? bytes - 1 - i : i) & 0xff);
  return text;
}

inline std::string PngChunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return Number(static_cast<uint32_t>(data.size()), 4, true) + body +
         Number(static_cast<uint32_t>(sum), 4, true);
}

inline std::string Packed(const std::string& rows) {
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  return packed;
}

// `rows` holds each row with its filter byte, 0, pass by pass if interlaced; `more`: chunks between
// the header and the pixels.
inline std::string Png(uint32_t width, uint32_t height, int bits, int colour_type,
                       const std::string& rows, bool interlaced = false,
                       const std::string& more = "") {
  const std::string header = Number(width, 4, true) + Number(height, 4, true) +
                             Number(static_cast<uint32_t>(bits), 1, true) +
                             Number(static_cast<uint32_t>(colour_type), 1, true) +
                             std::string(2, '\0') + Number(interlaced, 1, true);
  return "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", header) + more + PngChunk("IDAT", Packed(rows)) +
         PngChunk("IEND", "");
}

// A JPEG with the orientation in an EXIF segment, as a number of a TIFF's type: 3 SHORT, 4 LONG.
inline std::string WithOrientation(const std::string& jpeg, int orientation, bool big_endian,
                                   int type = 3) {
  const auto n = [big_endian](int v, int bytes) {
    return Number(static_cast<uint32_t>(v), bytes, big_endian);
  };
  const std::string value = type == 4 ? n(orientation, 4) : n(orientation, 2) + n(0, 2);
  const std::string tiff = std::string(big_endian ? "MM" : "II") + n(42, 2) + n(8, 4) + n(1, 2) +
                           n(0x0112, 2) + n(type, 2) + n(1, 4) + value + n(0, 4);
  const std::string segment = std::string("Exif\0\0", 6) + tiff;
  return jpeg.substr(0, 2) + "\xff\xe1" +
         Number(static_cast<uint32_t>(segment.size() + 2), 2, true) + segment + jpeg.substr(2);
}

// A BMP of 2x2 pixels; `extra`: the palette or the masks.
struct SmallBmp {
  uint32_t bits = 24, compression = 0, colours = 0, header = 40, planes = 1;
  std::string extra = {}, rows = {};
  std::string bytes() const {
    const auto n = [](uint32_t value, int size) { return Number(value, size, false); };
    const uint32_t begin = 14 + header + static_cast<uint32_t>(extra.size());
    const std::string fields =
        header == 12 ? n(12, 4) + n(2, 2) + n(2, 2) + n(planes, 2) + n(bits, 2)
                     : n(header, 4) + n(2, 4) + n(2, 4) + n(planes, 2) + n(bits, 2) +
                           n(compression, 4) + std::string(12, '\0') + n(colours, 4) + n(0, 4);
    return "BM" + n(0, 4) + n(0, 4) + n(begin, 4) + fields + extra + rows;
  }
};

inline std::string WhyNot(const std::string& bytes, const io::DecodeOptions& options = {}) {
  const auto image = io::DecodeImage(bytes, options);
  REQUIRE_FALSE(image.has_value());
  return image.error().reason;
}

inline io::Image Flipped(const io::Image& image, bool upside_down, bool mirrored) {
  io::Image flipped = image;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const uint8_t* from = image.row(upside_down ? image.height - 1 - y : y) +
                            image.channels * (mirrored ? image.width - 1 - x : x);
      std::copy_n(from, image.channels, flipped.row(y) + image.channels * x);
    }
  }
  return flipped;
}

// By the definition, in double.
inline io::Image OverWhite(const io::Image& rgba) {
  io::Image rgb;
  rgb.Resize(rgba.height, rgba.width, rgba.channels - 1);
  const auto colours = static_cast<size_t>(rgb.channels);
  for (size_t i = 0; i < rgb.pixels.size(); ++i) {
    const size_t pixel = i / colours * (colours + 1);
    const double alpha = rgba.pixels[pixel + colours] / 255.0;
    rgb.pixels[i] = static_cast<uint8_t>(
        std::lround(rgba.pixels[pixel + i % colours] * alpha + 255 * (1 - alpha)));
  }
  return rgb;
}

inline io::Image Decoded(const std::string& bytes) {
  auto image = io::DecodeImage(bytes);
  REQUIRE_MESSAGE(image.has_value(), image.error().reason);
  return *std::move(image);
}

inline void CheckPixels(const std::string& bytes, const io::Image& wanted, int tolerance = 0) {
  const io::Image image = Decoded(bytes);
  CHECK(image.height == wanted.height);
  CHECK(image.width == wanted.width);
  REQUIRE(image.channels == wanted.channels);
  CHECK(LargestDifference(image, wanted) <= tolerance);
}

// Every file that is cut off is refused; none crashes.
inline void CheckCuts(const std::string& bytes, size_t needed) {
  for (size_t size = 0; size < needed; size += 1 + needed / 200) {
    CAPTURE(size);
    CHECK_FALSE(io::DecodeImage(bytes.substr(0, size)).has_value());
  }
}

}  // namespace mxtrain::test
