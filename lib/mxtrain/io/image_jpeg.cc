#include <turbojpeg.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/io/image_codecs.h"

namespace mxtrain::io {
namespace {

const unsigned char* Data(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

bool IsCmyk(int colorspace) {
  return colorspace == TJCS_CMYK || colorspace == TJCS_YCCK;
}

// The smallest of the scales n/8 that is not below `least`.
tjscalingfactor ScaleFor(double least) {
  const int eighths = std::clamp(static_cast<int>(std::ceil(least * 8 - 1e-9)), 1, 8);
  return {eighths, 8};
}

// Adobe writes CMYK inverted (0 is full ink): the product of what ink and black let through.
void CmykToRgb(const std::vector<uint8_t>& cmyk, Image* image) {
  const size_t pixels = cmyk.size() / 4;
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) image->pixels[3 * i + c] = static_cast<uint8_t>((cmyk[4 * i + c] * cmyk[4 * i + 3] + 127) / 255);
  }
}

}  // namespace

JpegCodec::JpegCodec() {
  Renew();
}

JpegCodec::~JpegCodec() {
  tjDestroy(handle_);
}

void JpegCodec::Renew() {
  if (handle_) tjDestroy(handle_);
  handle_ = tjInitDecompress();
  if (!handle_) Throw(ErrorKind::kMemory, "cannot make a JPEG decoder: {}", tjGetErrorStr2(nullptr));
}

Refusal JpegCodec::Damage(std::string_view reason) {
  std::string text = format("damaged or unsupported JPEG: {}", reason.substr(reason.starts_with("tj") ? reason.find(": ") + 2 : 0));
  Renew();
  return Refusal{std::move(text)};
}

Expected<ImageInfo, Refusal> JpegCodec::Probe(std::string_view bytes) {
  ImageInfo info;
  int subsampling = 0, colorspace = 0;
  if (tjDecompressHeader3(handle_, Data(bytes), bytes.size(), &info.width, &info.height, &subsampling, &colorspace) != 0)
    return Damage(tjGetErrorStr2(handle_));
  // A file that ends before its scan counts as one of tables alone: no error, no size. Decoding to size 0 would mean "whatever it is".
  if (info.width < 1 || info.height < 1) return Damage("it ends before its picture");
  info.channels = IsCmyk(colorspace) ? 4 : colorspace == TJCS_GRAY ? 1 : 3;
  info.orientation = ExifOrientation(bytes);
  if (info.orientation >= 5) std::swap(info.height, info.width);
  return info;
}

std::optional<Refusal> JpegCodec::Decode(std::string_view bytes, const ImageInfo& info, const DecodeOptions& options, Image* image) {
  const bool turned = info.orientation >= 5, cmyk = info.channels == 4;
  const double least = options.exact || !options.min_scale ? 1.0 : options.min_scale(info.height, info.width);
  const tjscalingfactor scale = ScaleFor(least);
  const int height = TJSCALED((turned ? info.width : info.height), scale), width = TJSCALED((turned ? info.height : info.width), scale);
  const bool gray = options.channels == 1 || (options.channels == 0 && info.channels == 1);
  const int flags = TJFLAG_LIMITSCANS | (options.exact ? TJFLAG_ACCURATEDCT : TJFLAG_FASTDCT);

  image->Resize(height, width, gray && !cmyk ? 1 : 3);
  std::vector<uint8_t> inks(cmyk ? static_cast<size_t>(height) * static_cast<size_t>(width) * 4 : 0);
  uint8_t* to = cmyk ? inks.data() : image->pixels.data();
  const int pixel_format = cmyk ? TJPF_CMYK : gray ? TJPF_GRAY : TJPF_RGB;
  if (tjDecompress2(handle_, Data(bytes), bytes.size(), to, width, 0, height, pixel_format, flags) != 0)
    return Damage(tjGetErrorStr2(handle_));
  if (cmyk) CmykToRgb(inks, image);
  return std::nullopt;
}

std::string EncodeJpeg(const Image& image, int quality) {
  if (image.pixels.empty()) Throw(ErrorKind::kData, "cannot write an empty picture of {}x{} pixels as JPEG", image.width, image.height);
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitCompress(), tjDestroy);
  if (!handle) Throw(ErrorKind::kMemory, "cannot make a JPEG encoder: {}", tjGetErrorStr2(nullptr));
  const bool gray = image.channels == 1;
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  const int status = tjCompress2(handle.get(), image.pixels.data(), image.width, 0, image.height, gray ? TJPF_GRAY : TJPF_RGB, &buffer,
                                 &size, gray ? TJSAMP_GRAY : TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(buffer, tjFree);
  if (status != 0) Throw(ErrorKind::kData, "cannot write a picture as JPEG: {}", tjGetErrorStr2(handle.get()));
  return std::string(reinterpret_cast<const char*>(buffer), size);
}

}  // namespace mxtrain::io
