#pragma once
// Private to image*.cc: what each file format's reader offers.
#include "mxtrain/io/image.h"

namespace mxtrain::io {

// libjpeg-turbo. Each call reads the header anew.
class JpegCodec {
 public:
  JpegCodec();
  ~JpegCodec();
  JpegCodec(const JpegCodec&) = delete;
  JpegCodec& operator=(const JpegCodec&) = delete;

  Expected<ImageInfo, Refusal> Probe(std::string_view bytes);
  // `info` as Probe gave it. *image: gray or RGB, stored orientation (not yet that of `info`).
  std::optional<Refusal> Decode(std::string_view bytes, const ImageInfo& info, const DecodeOptions& options, Image* image);

 private:
  // A decoder that has met a file which ends in its header misreads the next one: after any failure a new one is made.
  Refusal Damage(std::string_view reason);
  void Renew();
  void* handle_ = nullptr;
};

// stb_image.
Expected<ImageInfo, Refusal> ProbePng(std::string_view bytes);
Expected<ImageInfo, Refusal> ProbeBmp(std::string_view bytes);
// *image has the channels of the file, alpha composed over white: gray or RGB.
std::optional<Refusal> DecodeWithStb(std::string_view bytes, const ImageInfo& info, Image* image);

// The orientation in a JPEG's EXIF block; 1 where there is none or it makes no sense.
int ExifOrientation(std::string_view jpeg);
// Turns a stored picture into the shown one.
void ApplyOrientation(int orientation, Image* image);

}  // namespace mxtrain::io
