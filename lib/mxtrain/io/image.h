// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images in memory, and their files: JPEG (libjpeg-turbo), PNG (libpng), BMP, TGA and PNM
// (stb_image behind checks of ours), GIF (giflib), WebP (libwebp) and TIFF (libtiff). A format is
// recognized by the content (image_formats.h: the table of names and endings).
//
// Decoding:
// - of several images in a file (GIF, WebP, TIFF) the first is read;
// - the orientation of a JPEG's or WebP's EXIF and of a TIFF is applied, so height and width are
//   those that a viewer shows (a PNG's eXIf chunk is not read);
// - alpha is composed over white, also what a GIF or an animation leaves open; a palette is
//   expanded; 16 bits per channel become 8 (the high byte; in a PNM, whose largest value is its
//   own, rounded) unless they are asked for;
// - a CMYK or YCCK JPEG becomes RGB as Adobe's inverted CMYK, without its colour profile;
// - RGB to gray is the luma of ITU-R BT.601, gray to RGB repeats the value.
// Rejected as damaged, never partially decoded: a file that lacks pixels or whose pixels may not be
// those that were stored (a JPEG or PNG whose decoder warns of such, a wrong checksum of what
// pixels depend on, an inconsistent header, a truncated file), and a JPEG of more than 500 scans.
// What costs no pixels is accepted: bytes between segments, metadata that make no sense.
//
// Memory: decoding needs at most twice the bytes of the pixels at 8 bits per channel, plus the
// file; a progressive JPEG and a run-length encoded BMP two more bytes per sample, a WebP and a
// TIFF four to eight more per pixel. The limits below bound it: 100 million pixels in colour decode
// to 300 MB and need 600 MB.
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/base/macros.h"
#include "mxtrain/io/image_formats.h"

namespace mxtrain::io {

// Rows from the top without gaps, channels interleaved (HWC): gray (1) or RGB (3). 8 bits per
// channel in `pixels`, or 16 in `deep`, of which the other is empty: deep images come only from
// decoding with DecodeOptions::bits = 16, and only what says so takes them.
struct Image {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
  std::vector<uint16_t> deep;

  bool is_deep() const { return !deep.empty(); }
  // Contents are unspecified afterwards; memory is reused if it suffices.
  void Resize(int new_height, int new_width, int new_channels) {
    height = new_height, width = new_width, channels = new_channels;
    pixels.resize(static_cast<size_t>(height) * static_cast<size_t>(width) *
                  static_cast<size_t>(channels));
    deep.clear();
  }
  void ResizeDeep(int new_height, int new_width, int new_channels) {
    Resize(new_height, new_width, 0);
    channels = new_channels;
    deep.resize(static_cast<size_t>(height) * static_cast<size_t>(width) *
                static_cast<size_t>(channels));
  }
  uint8_t* row(int y) {
    return pixels.data() +
           static_cast<size_t>(y) * static_cast<size_t>(width) * static_cast<size_t>(channels);
  }
  const uint8_t* row(int y) const { return const_cast<Image*>(this)->row(y); }
};

// A part of an image, in pixels from its upper left corner.
struct Box {
  int y = 0, x = 0, height = 0, width = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

// Position of the decoded pixels in the whole image.
struct Frame {
  int height = 0, width = 0;  // of the whole image, as shown
  Box covers;                 // part of the whole image, after reduction by `scale`
  double scale = 1;           // 1, 1/2, 1/4 or 1/8
};

// Contents of a file's header.
struct ImageInfo {
  ImageFormat format = ImageFormat::kJpeg;
  int height = 0, width = 0;  // as shown, with the orientation applied
  int channels = 0;           // of the file: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA or CMYK
  int orientation = 1;        // EXIF, 1 .. 8
  int bits = 8;               // per channel, 8 or 16, that decoding can give
};

constexpr int kLongestEdge = 65'535;  // that of a JPEG
constexpr int64_t kMostPixels = 100'000'000;

struct DecodeOptions {
  int channels = 0;  // 0: gray files stay gray, others become RGB; 1: gray; 3: RGB
  int bits = 8;      // 16: a PNG, TIFF or PNM of more than 8 bits per channel becomes a deep image
  // The numbers that a PNG stores: a palette is not expanded, its indices are gray; gray of fewer
  // than 8 bits is not stretched; alpha is dropped.
  bool as_stored = false;
  // Larger images, or with an edge above kLongestEdge, are rejected by their header.
  int64_t max_pixels = kMostPixels;
  // False: a JPEG is decoded at 1/2, 1/4 or 1/8 of its size if `part` allows it, which changes
  // pixel values slightly, and without `to_end` only down to the end of `part`, so damage below it
  // goes unnoticed unless the file is truncated.
  bool exact = true;
  // The whole file is read even if only a part is asked for: the answer whether the file is damaged
  // does not depend on `part`.
  bool to_end = false;
  // The requested part of an image of the given height and width; empty: all. Only that part of a
  // JPEG is decoded, to the same pixels.
  struct Part {
    Box box;
    double min_scale = 1;  // the smallest factor by which the image may be reduced
  };
  std::function<Part(int height, int width)> part = {};
};

// Reads only the header. A reason is a phrase: "the file is empty", "not a JPEG, PNG, ... or TIFF
// (begins with 'hello')".
MXTRAIN_API Expected<ImageInfo, Refusal> ProbeImage(std::string_view bytes);

// Decodes images one after another, keeping the decoder's state. One per thread.
class MXTRAIN_API ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  // Returns the reason if the image cannot be decoded; *image is then unspecified. Throws only
  // kMemory. Without `part` the frame is the whole image and need not be asked for.
  std::optional<Refusal> Decode(std::string_view bytes, const DecodeOptions& options, Image* image,
                                Frame* frame);
  std::optional<Refusal> Decode(std::string_view bytes, const DecodeOptions& options, Image* image);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// As ImageDecoder::Decode, for a single image.
MXTRAIN_API Expected<Image, Refusal> DecodeImage(std::string_view bytes,
                                                 const DecodeOptions& options = {});

// To gray (1) or RGB (3); also deep ones.
MXTRAIN_API void ConvertChannels(int channels, Image* image);

// Return a file's bytes. Throw kData for an empty image. Quality: 1 .. 100, with colour at half
// resolution (4:2:0).
MXTRAIN_API std::string EncodePng(const Image& image);
using Rgb = std::array<uint8_t, 3>;
using Palette = std::array<Rgb, 256>;
// A gray image of 8 bits as an indexed PNG: its values are indices of the palette.
MXTRAIN_API std::string EncodePng(const Image& image, const Palette& palette);
MXTRAIN_API std::string EncodeJpeg(const Image& image, int quality = 95);

}  // namespace mxtrain::io
