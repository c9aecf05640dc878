// SPDX-License-Identifier: Apache-2.0
// The first image of a TIFF or BigTIFF, by libtiff. Gray and RGB of 8 or 16 bits, with or without
// alpha, and palettes of 8 bits are read strip by strip; the rest of what libtiff knows (1, 2 and 4
// bits, CMYK, YCbCr, Lab, JPEG within TIFF) by its own conversion to RGBA. Each file has handlers
// of its own, so nothing is printed and threads do not meet; libtiff may allocate no more at once
// than the file is worth.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/io/internal/image_codecs.h"

namespace mxtrain::io {
namespace {

// Whether libtiff continues without a tag that the pixels depend on, and takes them for something
// else.
bool TiffWarningCostsPixels(std::string_view warning) {
  for (const std::string_view tag :
       {"ImageWidth",       "ImageLength",  "BitsPerSample",
        "SamplesPerPixel",  "Compression",  "PhotometricInterpretation",
        "ColorMap",         "ExtraSamples", "PlanarConfiguration",
        "Predictor",        "SampleFormat", "StripOffsets",
        "RowsPerStrip",     "TileOffsets",  "TileWidth",
        "TileLength",       "FillOrder",    "Orientation",
        "YCbCrSubsampling", "JPEGTables"}) {
    const size_t at = warning.find(tag);
    if (at != std::string_view::npos && at > 0 && warning[at - 1] == '"' &&
        warning.substr(at + tag.size()).starts_with('"'))
      return true;
  }
  return false;
}

// What the first directory says of the pixels.
struct TiffLayout {
  uint32_t width = 0, height = 0;
  uint16_t samples = 1, bits = 1, planes = PLANARCONFIG_CONTIG, photometric = 0,
           numbers = SAMPLEFORMAT_UINT, orientation = 1, extra = 0;

  int colours() const {
    return photometric == PHOTOMETRIC_MINISWHITE || photometric == PHOTOMETRIC_MINISBLACK ||
                   photometric == PHOTOMETRIC_PALETTE
               ? 1
               : 3;
  }
  bool has_alpha() const {  // the first sample after the colours
    return samples > colours() &&
           (extra == EXTRASAMPLE_ASSOCALPHA || extra == EXTRASAMPLE_UNASSALPHA);
  }
  // Whether the rows are read here.
  bool is_plain() const {
    const bool known = photometric == PHOTOMETRIC_MINISWHITE ||
                       photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_RGB ||
                       (photometric == PHOTOMETRIC_PALETTE && bits == 8 && samples == 1);
    return known && (bits == 8 || bits == 16) && numbers == SAMPLEFORMAT_UINT &&
           samples >= colours();
  }
};

// An open file.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes) {}
  ~Tiff() {
    if (tiff_) TIFFClose(tiff_);
  }
  Tiff(const Tiff&) = delete;
  Tiff& operator=(const Tiff&) = delete;

  std::optional<Refusal> Open();
  const TiffLayout& layout() const { return layout_; }
  // `deep`: plain ones of 16 bits.
  std::optional<Refusal> Read(bool deep, Image* image);

 private:
  static int Keep(TIFF*, void* self, const char* module, const char* text, va_list arguments);
  static int Warn(TIFF*, void* self, const char* module, const char* text, va_list arguments);
  static Tiff* Of(thandle_t self) { return static_cast<Tiff*>(self); }
  static tmsize_t ReadBytes(thandle_t self, void* to, tmsize_t size);
  static toff_t Seek(thandle_t self, toff_t offset, int from);
  static int Map(thandle_t self, void** begin, toff_t* size);

  uint16_t Tag(uint32_t tag, uint16_t otherwise) const;
  Refusal Failure() const {
    return Damaged(ImageFormat::kTiff, text_[0] != '\0' ? text_ : "its pixels cannot be read");
  }
  std::optional<Refusal> ReadPlain(bool deep, Image* image);
  std::optional<Refusal> ReadTiles(int sample, Image* image);
  void Put(const std::vector<uint8_t>& row, int sample, uint32_t y, uint32_t x, uint32_t count,
           size_t from, Image* image) const;
  std::optional<Refusal> ApplyPalette(Image* image) const;
  void ApplyAlpha(Image* image) const;
  std::optional<Refusal> ReadConverted(Image* image);

  std::string_view bytes_;
  size_t at_ = 0;
  TIFF* tiff_ = nullptr;
  TiffLayout layout_;
  char text_[256] = "";   // the first error; empty: none
  bool damaged_ = false;  // a warning says so
};

int Tiff::Keep(TIFF*, void* self, const char* module, const char* text, va_list arguments) {
  char* const to = static_cast<Tiff*>(self)->text_;
  constexpr size_t kSize = sizeof text_;
  if (to[0] != '\0') return 1;
  const int length = module ? std::snprintf(to, kSize, "%s: ", module) : 0;
  const size_t begin = std::min(kSize - 1, static_cast<size_t>(std::max(0, length)));
  std::vsnprintf(to + begin, kSize - begin, text, arguments);
  return 1;
}

int Tiff::Warn(TIFF* tiff, void* self, const char* module, const char* text, va_list arguments) {
  char warning[sizeof text_];
  va_list again;
  va_copy(again, arguments);
  std::vsnprintf(warning, sizeof warning, text, again);
  va_end(again);
  if (!TiffWarningCostsPixels(warning)) return 1;
  static_cast<Tiff*>(self)->damaged_ = true;
  return Keep(tiff, self, module, text, arguments);
}

tmsize_t Tiff::ReadBytes(thandle_t self, void* to, tmsize_t size) {
  Tiff* const file = Of(self);
  const size_t left = file->bytes_.size() - std::min(file->at_, file->bytes_.size());
  const size_t count = std::min(left, static_cast<size_t>(std::max<tmsize_t>(0, size)));
  if (count > 0) std::memcpy(to, file->bytes_.data() + file->at_, count);
  file->at_ += count;
  return static_cast<tmsize_t>(count);
}

toff_t Tiff::Seek(thandle_t self, toff_t offset, int from) {
  Tiff* const file = Of(self);
  const toff_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? file->at_ : file->bytes_.size();
  file->at_ = base + offset;
  return file->at_;
}

int Tiff::Map(thandle_t self, void** begin, toff_t* size) {
  const std::string_view bytes = Of(self)->bytes_;
  *begin = const_cast<char*>(bytes.data());
  *size = bytes.size();
  return 1;
}

uint16_t Tiff::Tag(uint32_t tag, uint16_t otherwise) const {
  uint16_t value = 0;
  return TIFFGetFieldDefaulted(tiff_, tag, &value) == 1 ? value : otherwise;
}

std::optional<Refusal> Tiff::Open() {
  // A single allocation: a strip or tile that is unpacked, or a directory's array.
  constexpr tmsize_t kBase = tmsize_t{16} << 20, kPerByte = 512;
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  if (!options) Throw(ErrorKind::kMemory, "no memory to decode a TIFF");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(),
                                      kBase + kPerByte * static_cast<tmsize_t>(bytes_.size()));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), Keep, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), Warn, this);
  const auto write = [](thandle_t, void*, tmsize_t) { return tmsize_t{0}; };
  const auto close = [](thandle_t) { return 0; };
  const auto size = [](thandle_t self) { return static_cast<toff_t>(Of(self)->bytes_.size()); };
  const auto unmap = [](thandle_t, void*, toff_t) {};
  tiff_ = TIFFClientOpenExt("image", "r", this, ReadBytes, write, Seek, close, size, Map, unmap,
                            options.get());
  if (!tiff_ || damaged_) return Failure();
  TIFFGetField(tiff_, TIFFTAG_IMAGEWIDTH, &layout_.width);
  TIFFGetField(tiff_, TIFFTAG_IMAGELENGTH, &layout_.height);
  if (layout_.width == 0 || layout_.height == 0 || layout_.width > INT32_MAX ||
      layout_.height > INT32_MAX)
    return Damaged(ImageFormat::kTiff, "impossible header");
  layout_.samples = Tag(TIFFTAG_SAMPLESPERPIXEL, 1);
  layout_.bits = Tag(TIFFTAG_BITSPERSAMPLE, 1);
  layout_.planes = Tag(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  layout_.photometric = Tag(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  layout_.numbers = Tag(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  layout_.orientation = Tag(TIFFTAG_ORIENTATION, 1);
  uint16_t count = 0;
  const uint16_t* kinds = nullptr;
  if (TIFFGetFieldDefaulted(tiff_, TIFFTAG_EXTRASAMPLES, &count, &kinds) == 1 && count > 0)
    layout_.extra = kinds[0];
  constexpr int kMostSamples = 6;
  if (layout_.colours() == 1 ? layout_.samples > 2 : layout_.samples > kMostSamples)
    return Damaged(ImageFormat::kTiff, format("{} samples per pixel", layout_.samples));
  if (layout_.numbers != SAMPLEFORMAT_UINT && layout_.numbers != SAMPLEFORMAT_VOID)
    return Damaged(ImageFormat::kTiff, "samples that are not unsigned integers");
  text_[0] = '\0';  // what was said of metadata
  return std::nullopt;
}

std::optional<Refusal> Tiff::Read(bool deep, Image* image) {
  return layout_.is_plain() ? ReadPlain(deep, image) : ReadConverted(image);
}

// One channel of the image, or, where samples are interleaved, all: the kept samples of `count`
// pixels from byte `from` of a stored row.
void Tiff::Put(const std::vector<uint8_t>& row, int sample, uint32_t y, uint32_t x, uint32_t count,
               size_t from, Image* image) const {
  const bool apart = layout_.planes == PLANARCONFIG_SEPARATE;
  const size_t sample_bytes = layout_.bits / 8, channels = static_cast<size_t>(image->channels),
               step = sample_bytes * (apart ? 1 : layout_.samples), kept = apart ? 1 : channels;
  const size_t to = (size_t{y} * layout_.width + x) * channels + static_cast<size_t>(sample);
  const uint8_t* const pixels = row.data() + from;
  const bool inverted = layout_.photometric == PHOTOMETRIC_MINISWHITE && sample == 0;
  const auto put = [&](auto* out, auto read) {
    using Sample = std::remove_pointer_t<decltype(out)>;
    for (size_t i = 0; i < count; ++i) {
      for (size_t k = 0; k < kept; ++k)
        out[i * channels + k] = read(pixels + i * step + k * sample_bytes);
      if (inverted)
        out[i * channels] =
            static_cast<Sample>(std::numeric_limits<Sample>::max() - out[i * channels]);
    }
  };
  // libtiff has brought samples of 16 bits into the processor's order.
  const auto deep = [](const uint8_t* at) {
    uint16_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  if (image->is_deep()) return put(image->deep.data() + to, deep);
  if (sample_bytes == 2)
    return put(image->pixels.data() + to,
               [&](const uint8_t* at) { return static_cast<uint8_t>(deep(at) >> 8); });
  put(image->pixels.data() + to, [](const uint8_t* at) { return *at; });
}

// Strips are tiles as wide as the image. A whole one is unpacked at once: in some files a run
// continues in the next row.
std::optional<Refusal> Tiff::ReadTiles(int sample, Image* image) {
  const bool tiled = TIFFIsTiled(tiff_) != 0;
  uint32_t width = layout_.width, height = 0;
  if (tiled) TIFFGetField(tiff_, TIFFTAG_TILEWIDTH, &width);
  TIFFGetFieldDefaulted(tiff_, tiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &height);
  if (!tiled) height = std::min(height, layout_.height);
  const tmsize_t size = tiled ? TIFFTileSize(tiff_) : TIFFStripSize(tiff_),
                 row_bytes = tiled ? TIFFTileRowSize(tiff_) : TIFFScanlineSize(tiff_);
  // At most one tile at the right and one at the bottom are cut by the image's edge.
  const uint64_t image_bytes = uint64_t{layout_.width} * layout_.height * layout_.samples * 2;
  const uint64_t samples = layout_.planes == PLANARCONFIG_SEPARATE ? 1 : layout_.samples;
  if (width == 0 || height == 0 || size <= 0 || row_bytes <= 0 ||
      static_cast<uint64_t>(size) > 4 * image_bytes + (uint64_t{16} << 20) ||
      static_cast<uint64_t>(row_bytes) < samples * width * (layout_.bits / 8) ||
      static_cast<uint64_t>(size) < static_cast<uint64_t>(row_bytes) * height)
    return Damaged(ImageFormat::kTiff,
                   format("{} of {}x{} pixels", tiled ? "tiles" : "strips", width, height));
  std::vector<uint8_t> tile(static_cast<size_t>(size));
  const auto plane = static_cast<uint16_t>(sample);
  for (uint64_t y = 0; y < layout_.height; y += height) {
    for (uint64_t x = 0; x < layout_.width; x += width) {
      const auto left = static_cast<uint32_t>(x), top = static_cast<uint32_t>(y);
      const tmsize_t read =
          tiled ? TIFFReadTile(tiff_, tile.data(), left, top, 0, plane)
                : TIFFReadEncodedStrip(tiff_, TIFFComputeStrip(tiff_, top, plane), tile.data(), -1);
      const uint64_t rows = std::min<uint64_t>(height, layout_.height - y),
                     columns = std::min<uint64_t>(width, layout_.width - x);
      if (read < 0 || static_cast<uint64_t>(read) < rows * static_cast<uint64_t>(row_bytes))
        return Failure();
      for (uint64_t i = 0; i < rows; ++i) {
        Put(tile, sample, static_cast<uint32_t>(top + i), left, static_cast<uint32_t>(columns),
            i * static_cast<uint64_t>(row_bytes), image);
      }
    }
  }
  return std::nullopt;
}

// Colours of 16 bits, as the format says; of 8 in files of some writers, which use no more.
std::optional<Refusal> Tiff::ApplyPalette(Image* image) const {
  uint16_t* maps[3] = {};
  if (TIFFGetField(tiff_, TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]) != 1)
    return Damaged(ImageFormat::kTiff, "no palette");
  constexpr size_t kColours = 256;
  const bool deep = std::any_of(maps, maps + 3, [](const uint16_t* map) {
    return std::any_of(map, map + kColours, [](uint16_t value) { return value > 255; });
  });
  const std::vector<uint8_t> indices = std::move(image->pixels);
  image->pixels = {};
  image->Resize(image->height, image->width, 3);
  uint8_t* to = image->pixels.data();
  for (const uint8_t index : indices) {
    for (const uint16_t* map : maps) *to++ = static_cast<uint8_t>(map[index] >> (deep ? 8 : 0));
  }
  return std::nullopt;
}

// Associated alpha is in the colours already: white is added. `channels`: with alpha, the last.
template <typename T>
void AddWhite(size_t channels, std::vector<T>* samples) {
  constexpr int kWhite = std::numeric_limits<T>::max();
  const size_t colours = channels - 1, pixels = samples->size() / channels;
  for (size_t i = 0; i < pixels; ++i) {
    const int white = kWhite - (*samples)[i * channels + colours];
    for (size_t c = 0; c < colours; ++c) {
      (*samples)[i * colours + c] =
          static_cast<T>(std::min(kWhite, (*samples)[i * channels + c] + white));
    }
  }
  samples->resize(pixels * colours);
}

void Tiff::ApplyAlpha(Image* image) const {
  if (!layout_.has_alpha()) return;
  if (layout_.extra == EXTRASAMPLE_UNASSALPHA) return ComposeOverWhite(image);
  const auto channels = static_cast<size_t>(image->channels--);
  image->is_deep() ? AddWhite(channels, &image->deep) : AddWhite(channels, &image->pixels);
}

std::optional<Refusal> Tiff::ReadPlain(bool deep, Image* image) {
  const int channels = layout_.colours() + (layout_.has_alpha() ? 1 : 0);
  const int height = static_cast<int>(layout_.height), width = static_cast<int>(layout_.width);
  deep ? image->ResizeDeep(height, width, channels) : image->Resize(height, width, channels);
  const int passes = layout_.planes == PLANARCONFIG_SEPARATE ? channels : 1;
  for (int sample = 0; sample < passes; ++sample) {
    if (auto damage = ReadTiles(sample, image)) return damage;
  }
  if (layout_.photometric == PHOTOMETRIC_PALETTE) return ApplyPalette(image);
  ApplyAlpha(image);
  return std::nullopt;
}

// To RGB; alpha, if libtiff knows it, is associated.
std::optional<Refusal> Tiff::ReadConverted(Image* image) {
  char why[1024] = "";  // as libtiff demands
  TIFFRGBAImage reader;
  if (TIFFRGBAImageOK(tiff_, why) == 0 || TIFFRGBAImageBegin(&reader, tiff_, 1, why) == 0)
    return Damaged(ImageFormat::kTiff, why);
  reader.orientation = reader.req_orientation = ORIENTATION_TOPLEFT;  // as stored
  std::vector<uint32_t> pixels(size_t{layout_.width} * layout_.height);
  const int good = TIFFRGBAImageGet(&reader, pixels.data(), layout_.width, layout_.height);
  TIFFRGBAImageEnd(&reader);
  if (good == 0) return Failure();
  image->Resize(static_cast<int>(layout_.height), static_cast<int>(layout_.width), 3);
  uint8_t* to = image->pixels.data();
  for (const uint32_t pixel : pixels) {
    const uint32_t white = layout_.has_alpha() ? 255 - TIFFGetA(pixel) : 0;
    for (const uint32_t colour : {TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel)})
      *to++ = static_cast<uint8_t>(std::min(255u, colour + white));
  }
  if (layout_.colours() == 1 && layout_.photometric != PHOTOMETRIC_PALETTE)
    ConvertChannels(1, image);
  return std::nullopt;
}

}  // namespace

Expected<ImageInfo, Refusal> ProbeTiff(std::string_view bytes) {
  Tiff tiff(bytes);
  if (auto damage = tiff.Open()) return *std::move(damage);
  const TiffLayout& layout = tiff.layout();
  const bool gray = layout.colours() == 1 && layout.photometric != PHOTOMETRIC_PALETTE;
  const bool more = layout.has_alpha() || layout.photometric == PHOTOMETRIC_SEPARATED;
  ImageInfo info{ImageFormat::kTiff, static_cast<int>(layout.height),
                 static_cast<int>(layout.width), (gray ? 1 : 3) + (more ? 1 : 0)};
  info.bits = layout.is_plain() && layout.bits == 16 ? 16 : 8;
  if (layout.orientation >= 1 && layout.orientation <= 8) ShowOriented(layout.orientation, &info);
  return info;
}

std::optional<Refusal> DecodeTiff(std::string_view bytes, const ImageInfo&, Image* image) {
  Tiff tiff(bytes);
  if (auto damage = tiff.Open()) return damage;
  return tiff.Read(false, image);
}

std::optional<Refusal> DecodeDeepTiff(std::string_view bytes, const ImageInfo&, Image* image) {
  Tiff tiff(bytes);
  if (auto damage = tiff.Open()) return damage;
  return tiff.Read(true, image);
}

}  // namespace mxtrain::io
