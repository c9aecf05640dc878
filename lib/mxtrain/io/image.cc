// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/image.h"

#include <algorithm>
#include <climits>
#include <iterator>
#include <limits>
#include <type_traits>

#include "mxtrain/base/format.h"
#include "mxtrain/io/internal/image_codecs.h"

namespace mxtrain::io {
namespace {

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";

// The first bytes in printable form.
std::string Beginning(std::string_view bytes) {
  std::string text;
  for (const char c : bytes.substr(0, 12))
    text += c >= ' ' && c <= '~' ? std::string(1, c)
                                 : format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

// "a HEIC": a format of cameras or of the web that is not read; null for anything else.
const char* OtherFormat(std::string_view bytes) {
  if (bytes.size() < 12) return nullptr;
  if (bytes.substr(4, 4) == "ftyp") {
    const std::string_view brand = bytes.substr(8, 4);
    for (const std::string_view heic : {"heic", "heix", "hevc", "heim", "heis", "mif1", "msf1"}) {
      if (brand == heic) return "a HEIC";
    }
    return brand == "avif" || brand == "avis" ? "an AVIF" : nullptr;
  }
  return nullptr;
}

// A TIFF or BigTIFF of either byte order.
bool LooksLikeTiff(std::string_view bytes) {
  for (const std::string_view begin :
       {std::string_view("II*\0", 4), std::string_view("MM\0*", 4), std::string_view("II+\0", 4),
        std::string_view("MM\0+", 4)}) {
    if (bytes.starts_with(begin)) return true;
  }
  return false;
}

bool LooksLikePnm(std::string_view bytes) {
  return bytes.size() >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
         std::string_view(" \t\n\v\f\r#").find(bytes[2]) != std::string_view::npos;
}

// How the formats other than JPEG are recognized and read. TGA has no signature and comes last.
struct Reader {
  bool (*recognizes)(std::string_view bytes);
  Expected<ImageInfo, Refusal> (*probe)(std::string_view bytes);
  std::optional<Refusal> (*decode)(std::string_view bytes, const ImageInfo& info, Image* image);
  // To a deep image; null if the format has none.
  std::optional<Refusal> (*decode_deep)(std::string_view bytes, const ImageInfo& info,
                                        Image* image) = nullptr;
  // DecodeOptions::as_stored; null: as without.
  std::optional<Refusal> (*decode_stored)(std::string_view bytes, const ImageInfo& info,
                                          Image* image) = nullptr;
};

constexpr Reader kReaders[] = {
    {[](std::string_view b) { return b.starts_with(kPngSignature); }, ProbePng, DecodePng,
     DecodeDeepPng, DecodeStoredPng},
    {[](std::string_view b) { return b.starts_with("BM"); }, ProbeBmp, DecodeBmp},
    {LooksLikePnm, ProbePnm, DecodePnm, DecodeDeepPnm},
    {[](std::string_view b) { return b.starts_with("GIF87a") || b.starts_with("GIF89a"); },
     ProbeGif, DecodeGif},
    {[](std::string_view b) {
       return b.size() >= 12 && b.starts_with("RIFF") && b.substr(8, 4) == "WEBP";
     },
     ProbeWebp, DecodeWebp},
    {LooksLikeTiff, ProbeTiff, DecodeTiff, DecodeDeepTiff},
    {LooksLikeTga, ProbeTga, DecodeTga},
};

// Null for a JPEG and for anything else.
const Reader* ReaderOf(std::string_view bytes) {
  const auto found =
      std::ranges::find_if(kReaders, [&](const Reader& r) { return r.recognizes(bytes); });
  return found == std::end(kReaders) ? nullptr : found;
}

Expected<ImageInfo, Refusal> Probe(std::string_view bytes, JpegCodec& jpeg) {
  if (bytes.empty()) return Refusal{"the file is empty"};
  if (bytes.size() > INT_MAX) return Refusal{"the file is larger than 2 GiB"};
  if (bytes.starts_with("\xff\xd8")) return jpeg.Probe(bytes);
  if (const Reader* reader = ReaderOf(bytes)) return reader->probe(bytes);
  if (const char* other = OtherFormat(bytes))
    return Refusal{format("{} image, which is not supported; convert it to JPEG or PNG", other)};
  return Refusal{format("not a {} (begins with '{}')", ImageFormatNames(), Beginning(bytes))};
}

std::optional<Refusal> DecodeAs(const ImageInfo& info, std::string_view bytes,
                                const DecodeOptions& options, JpegCodec& jpeg, Image* image,
                                Frame* frame) {
  if (info.format == ImageFormat::kJpeg) return jpeg.Decode(bytes, info, options, image, frame);
  const Reader& reader = *ReaderOf(bytes);
  const bool deep = options.bits > 8 && info.bits > 8;
  if (options.as_stored && reader.decode_stored && !deep)
    return reader.decode_stored(bytes, info, image);
  return (deep ? reader.decode_deep : reader.decode)(bytes, info, image);
}

template <typename T>
void GrayToRgb(std::vector<T>* samples) {
  const size_t pixels = samples->size();
  samples->resize(3 * pixels);
  for (size_t i = pixels; i-- > 0;) {  // from the end: unread pixels are before the written ones
    const T value = (*samples)[i];
    std::fill_n(samples->begin() + static_cast<std::ptrdiff_t>(3 * i), 3, value);
  }
}

template <typename T>
void RgbToGray(std::vector<T>* samples) {
  for (size_t i = 0; i < samples->size() / 3; ++i) {
    const T* p = samples->data() + 3 * i;
    (*samples)[i] = static_cast<T>((299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000);
  }
  samples->resize(samples->size() / 3);
}

template <typename T>
void Convert(int channels, Image* image, std::vector<T>* samples) {
  if (channels == image->channels) return;
  if (channels == 1 && image->channels == 3) RgbToGray(samples);
  if (channels == 3 && image->channels == 1) GrayToRgb(samples);
  image->channels = channels;
}

// `channels`: of the samples, the last is alpha.
template <typename T>
void Compose(size_t channels, std::vector<T>* samples) {
  using Wide = std::conditional_t<sizeof(T) == 1, int, int64_t>;
  constexpr Wide kWhite = std::numeric_limits<T>::max();
  const size_t colours = channels - 1, pixels = samples->size() / channels;
  const T* from = samples->data();
  T* to = samples->data();
  for (size_t i = 0; i < pixels; ++i, from += channels) {
    const Wide alpha = from[colours];
    for (size_t c = 0; c < colours; ++c)
      *to++ = static_cast<T>((from[c] * alpha + kWhite * (kWhite - alpha) + kWhite / 2) / kWhite);
  }
  samples->resize(pixels * colours);
}

}  // namespace

Refusal Damaged(ImageFormat format, std::string_view reason) {
  return Refusal{mxtrain::format("damaged or unsupported {}: {}", NameOf(format), reason)};
}

struct ImageDecoder::Impl {
  JpegCodec jpeg;
};

ImageDecoder::ImageDecoder() : impl_(std::make_unique<Impl>()) {}
ImageDecoder::~ImageDecoder() = default;

std::optional<Refusal> ImageDecoder::Decode(std::string_view bytes, const DecodeOptions& options,
                                            Image* image) {
  Frame whole;
  return Decode(bytes, options, image, &whole);
}

std::optional<Refusal> ImageDecoder::Decode(std::string_view bytes, const DecodeOptions& options,
                                            Image* image, Frame* frame) {
  const auto info = Probe(bytes, impl_->jpeg);
  if (!info) return info.error();
  if (int64_t{info->height} * info->width > options.max_pixels) {
    return Refusal{format("{}x{} pixels are more than the limit of {}", info->width, info->height,
                          options.max_pixels)};
  }
  if (std::max(info->height, info->width) > kLongestEdge) {
    return Refusal{format("{}x{} pixels: the longer edge is more than the limit of {}", info->width,
                          info->height, kLongestEdge)};
  }
  *frame = {info->height, info->width, {0, 0, info->height, info->width}, 1};
  if (auto refusal = DecodeAs(*info, bytes, options, impl_->jpeg, image, frame)) return refusal;
  ApplyOrientation(info->orientation, image);
  if (info->orientation != 1) frame->covers = {0, 0, image->height, image->width};
  if (options.channels != 0) ConvertChannels(options.channels, image);
  return std::nullopt;
}

void ConvertChannels(int channels, Image* image) {
  image->is_deep() ? Convert(channels, image, &image->deep)
                   : Convert(channels, image, &image->pixels);
}

void ComposeOverWhite(Image* image) {
  if (image->channels % 2 != 0) return;
  const auto channels = static_cast<size_t>(image->channels--);
  image->is_deep() ? Compose(channels, &image->deep) : Compose(channels, &image->pixels);
}

Expected<ImageInfo, Refusal> ProbeImage(std::string_view bytes) {
  JpegCodec jpeg;
  return Probe(bytes, jpeg);
}

Expected<Image, Refusal> DecodeImage(std::string_view bytes, const DecodeOptions& options) {
  Image image;
  if (auto refusal = ImageDecoder().Decode(bytes, options, &image)) return *std::move(refusal);
  return image;
}

}  // namespace mxtrain::io
