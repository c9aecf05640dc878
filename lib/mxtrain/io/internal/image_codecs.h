// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readers of the file formats. Private to image*.cc.
#include "mxtrain/io/image.h"

namespace mxtrain::io {

// libjpeg-turbo, with its state kept between images.
class JpegCodec {
 public:
  JpegCodec();
  ~JpegCodec();
  JpegCodec(const JpegCodec&) = delete;
  JpegCodec& operator=(const JpegCodec&) = delete;

  Expected<ImageInfo, Refusal> Probe(std::string_view bytes);
  // Directly after Probe of the same bytes, which gave `info`. *image: gray or RGB, stored
  // orientation (not yet that of `info`). An image stored rotated is decoded whole.
  std::optional<Refusal> Decode(std::string_view bytes, const ImageInfo& info,
                                const DecodeOptions& options, Image* image, Frame* frame);

 private:
  struct State;
  template <typename F>
  bool Guarded(F&& work);
  Refusal Damage();
  std::unique_ptr<State> state_;
};

// "damaged or unsupported PNG: rows are missing"
Refusal Damaged(ImageFormat format, std::string_view reason);

// The readers of the other formats. Probe reads the header of bytes that begin like the format.
// Decode checks all that Probe left, then *image becomes gray or RGB as the file is, in the stored
// orientation, with alpha composed over white; DecodeDeep gives the 16 bits that a file has, where
// `info` says so. `info` is what Probe gave for the same bytes. No
// reader allocates before the size of what it allocates is bounded by that of `info` or of the
// file.
Expected<ImageInfo, Refusal> ProbePng(std::string_view bytes);
std::optional<Refusal> DecodePng(std::string_view bytes, const ImageInfo& info, Image* image);
std::optional<Refusal> DecodeDeepPng(std::string_view bytes, const ImageInfo& info, Image* image);
std::optional<Refusal> DecodeStoredPng(std::string_view bytes, const ImageInfo& info, Image* image);
Expected<ImageInfo, Refusal> ProbeBmp(std::string_view bytes);
std::optional<Refusal> DecodeBmp(std::string_view bytes, const ImageInfo& info, Image* image);
Expected<ImageInfo, Refusal> ProbePnm(std::string_view bytes);
std::optional<Refusal> DecodePnm(std::string_view bytes, const ImageInfo& info, Image* image);
std::optional<Refusal> DecodeDeepPnm(std::string_view bytes, const ImageInfo& info, Image* image);
Expected<ImageInfo, Refusal> ProbeGif(std::string_view bytes);
std::optional<Refusal> DecodeGif(std::string_view bytes, const ImageInfo& info, Image* image);
Expected<ImageInfo, Refusal> ProbeWebp(std::string_view bytes);
std::optional<Refusal> DecodeWebp(std::string_view bytes, const ImageInfo& info, Image* image);
Expected<ImageInfo, Refusal> ProbeTiff(std::string_view bytes);
std::optional<Refusal> DecodeTiff(std::string_view bytes, const ImageInfo& info, Image* image);
std::optional<Refusal> DecodeDeepTiff(std::string_view bytes, const ImageInfo& info, Image* image);
// A TGA begins with no signature: the whole header must make sense.
bool LooksLikeTga(std::string_view bytes);
Expected<ImageInfo, Refusal> ProbeTga(std::string_view bytes);
std::optional<Refusal> DecodeTga(std::string_view bytes, const ImageInfo& info, Image* image);

// Removes the alpha channel of an image with 2 or 4 channels; others are unchanged.
void ComposeOverWhite(Image* image);

// The orientation in a JPEG's EXIF segment, or in the bytes of an EXIF block (a TIFF header and a
// directory); 1 if there is none or it is invalid.
int ExifOrientation(std::string_view jpeg);
int OrientationOfExif(std::string_view block);
// Exchanges height and width where the orientation does.
void ShowOriented(int orientation, ImageInfo* info);
// Rotates a stored image to its shown orientation.
void ApplyOrientation(int orientation, Image* image);

}  // namespace mxtrain::io
