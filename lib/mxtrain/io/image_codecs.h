#pragma once
// Private to image*.cc: what each file format's reader offers.
#include "mxtrain/io/image.h"

namespace mxtrain::io {

// libjpeg-turbo, with its state kept between pictures.
class JpegCodec {
 public:
  JpegCodec();
  ~JpegCodec();
  JpegCodec(const JpegCodec&) = delete;
  JpegCodec& operator=(const JpegCodec&) = delete;

  Expected<ImageInfo, Refusal> Probe(std::string_view bytes);
  // Directly after Probe of the same bytes, which gave `info`. *image: gray or RGB, stored orientation (not yet that of `info`). A picture
  // that is stored turned is decoded whole.
  std::optional<Refusal> Decode(std::string_view bytes, const ImageInfo& info, const DecodeOptions& options, Image* image, Frame* frame);

 private:
  struct State;
  template <typename F>
  bool Guarded(F&& work);
  Refusal Damage();
  std::unique_ptr<State> state_;
};

// libpng and stb_image. *image becomes gray or RGB, as the file is, alpha composed over white.
Expected<ImageInfo, Refusal> ProbePng(std::string_view bytes);
std::optional<Refusal> DecodePng(std::string_view bytes, Image* image);
Expected<ImageInfo, Refusal> ProbeBmp(std::string_view bytes);
std::optional<Refusal> DecodeBmp(std::string_view bytes, const ImageInfo& info, Image* image);
// Of 2 or 4 channels, the last of which is alpha, the others stay; others are left as they are.
void ComposeOverWhite(Image* image);

// The orientation in a JPEG's EXIF block; 1 where there is none or it makes no sense.
int ExifOrientation(std::string_view jpeg);
// Turns a stored picture into the shown one.
void ApplyOrientation(int orientation, Image* image);

}  // namespace mxtrain::io
