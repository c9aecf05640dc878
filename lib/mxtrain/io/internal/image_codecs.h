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

// *image becomes gray or RGB, as the file is, alpha composed over white.
Expected<ImageInfo, Refusal> ProbePng(std::string_view bytes);
std::optional<Refusal> DecodePng(std::string_view bytes, Image* image);
Expected<ImageInfo, Refusal> ProbeBmp(std::string_view bytes);
std::optional<Refusal> DecodeBmp(std::string_view bytes, const ImageInfo& info, Image* image);
// Removes the alpha channel of an image with 2 or 4 channels; others are unchanged.
void ComposeOverWhite(Image* image);

// The orientation in a JPEG's EXIF block; 1 if there is none or it is invalid.
int ExifOrientation(std::string_view jpeg);
// Rotates a stored image to its shown orientation.
void ApplyOrientation(int orientation, Image* image);

}  // namespace mxtrain::io
