#pragma once
// Pictures in memory, and the files that they come from: JPEG (libjpeg-turbo), PNG (libpng) and BMP.
//
// What each kind of file becomes:
// - EXIF orientation of a JPEG is applied, so height and width are those that a viewer shows (a PNG's eXIf chunk is not read);
// - alpha is composed over white; a palette is expanded; 16 bits per channel become 8 (the high byte);
// - a CMYK or YCCK JPEG becomes RGB as Adobe's inverted CMYK, without its colour profile;
// - RGB to gray is the luma of ITU-R BT.601, gray to RGB repeats the value.
// A JPEG about which its decoder warns, or of more than 500 scans, a PNG whose checksums fail, a BMP whose header makes no sense and a file
// that ends early are damaged: refused, never half shown.
//
// Memory: decoding takes at most twice the bytes of the file's pixels at 8 bits per channel, and the file; a progressive JPEG two bytes
// more for each of its samples. So the limits below bound it: at 100 million pixels in colour, 300 MB are decoded, and 600 MB taken.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/base/macros.h"

namespace mxtrain::io {

// 8 bits per channel, rows from the top without gaps, channels interleaved (HWC): gray (1) or RGB (3).
struct Image {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;

  // Contents are unspecified afterwards; memory is kept where it suffices.
  void Resize(int new_height, int new_width, int new_channels) {
    height = new_height, width = new_width, channels = new_channels;
    pixels.resize(static_cast<size_t>(height) * static_cast<size_t>(width) * static_cast<size_t>(channels));
  }
  uint8_t* row(int y) { return pixels.data() + static_cast<size_t>(y) * static_cast<size_t>(width) * static_cast<size_t>(channels); }
  const uint8_t* row(int y) const { return const_cast<Image*>(this)->row(y); }
};

// A part of a picture, in pixels from its upper left corner.
struct Box {
  int y = 0, x = 0, height = 0, width = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

// How the pixels that were decoded lie in the whole picture.
struct Frame {
  int height = 0, width = 0;  // of the whole picture, as shown
  Box covers;                 // which of the pixels of the whole picture, after its reduction by `scale`
  double scale = 1;           // 1, 1/2, 1/4 or 1/8
};

enum class ImageFormat { kJpeg, kPng, kBmp };

// What a file's header says.
struct ImageInfo {
  ImageFormat format = ImageFormat::kJpeg;
  int height = 0, width = 0;  // as shown: the orientation is applied
  int channels = 0;           // of the file: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA or CMYK
  int orientation = 1;        // EXIF, 1 .. 8
};

constexpr int kLongestEdge = 65'535;  // that of a JPEG

struct DecodeOptions {
  int channels = 0;                  // 0: gray files stay gray, others become RGB; 1: gray; 3: RGB
  int64_t max_pixels = 100'000'000;  // larger pictures, and those of an edge above kLongestEdge, are refused by their header alone
  // False: a JPEG is decoded at 1/2, 1/4 or 1/8 of its size where `part` allows it, which changes pixel values a little, and no further
  // than `part` reaches, so that damage below it goes unnoticed in a file that is not cut off.
  bool exact = true;
  // What of the picture of the given height and width is wanted; empty: all. A JPEG is decoded there alone, with the same pixels.
  struct Part {
    Box box;
    double min_scale = 1;  // the least factor by which the picture may be reduced beforehand
  };
  std::function<Part(int height, int width)> part = {};
};

// Reads the header alone. A reason is a phrase: "not a JPEG, PNG or BMP (begins with 'hello')".
MXTRAIN_API Expected<ImageInfo, Refusal> ProbeImage(std::string_view bytes);

// Decodes one picture after another, keeping the decoder's state between them. One per thread.
class MXTRAIN_API ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  // The reason when the picture cannot be had; *image is then unspecified. Throws only kMemory.
  std::optional<Refusal> Decode(std::string_view bytes, const DecodeOptions& options, Image* image, Frame* frame);
  std::optional<Refusal> Decode(std::string_view bytes, const DecodeOptions& options, Image* image);  // without `part`

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// As ImageDecoder::Decode, for a single picture.
MXTRAIN_API Expected<Image, Refusal> DecodeImage(std::string_view bytes, const DecodeOptions& options = {});

// To gray (1) or RGB (3).
MXTRAIN_API void ConvertChannels(int channels, Image* image);

// A file's bytes. Throw kData for an empty picture.
MXTRAIN_API std::string EncodePng(const Image& image);
MXTRAIN_API std::string EncodeJpeg(const Image& image, int quality = 95);  // 1 .. 100; colour at half resolution (4:2:0)

}  // namespace mxtrain::io
