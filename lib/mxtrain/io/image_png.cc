// SPDX-License-Identifier: Apache-2.0
// libpng's push reader: it receives the file, delivers row after row and holds two besides the
// image; data that would unpack to more than the header says costs nothing. It checks the header,
// the CRC of every chunk that pixels depend on, and the compressed data's Adler-32. The writer
// holds as little. Like libjpeg,
// libpng reports errors through a function that must not return: it jumps back to Guarded, over
// code without destructors.
#include <png.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/io/internal/big_endian.h"
#include "mxtrain/io/internal/image_codecs.h"

namespace mxtrain::io {
namespace {

// Whether the pixels may not be what was stored. libpng warns of much else, and ignores it: a
// palette in a gray image, a profile that is none, metadata with a wrong CRC. Of compressed data
// only those after the last row are harmless; transparency is the one optional chunk that counts.
bool PngWarningCostsPixels(std::string_view warning) {
  if (warning.starts_with("tRNS")) return warning.find("CRC") != std::string_view::npos;
  return warning.find("IDAT") != std::string_view::npos &&
         warning.find("Extra compress") == std::string_view::npos;
}

// What reading and writing share: libpng's errors and memory.
class PngCodec {
 public:
  PngCodec() = default;
  PngCodec(const PngCodec&) = delete;
  PngCodec& operator=(const PngCodec&) = delete;

 protected:
  static void OnError(png_structp png, png_const_charp text) {
    Of(png)->Keep(text);
    std::longjmp(Of(png)->jump_, 1);
  }
  static void OnWarning(png_structp png, png_const_charp text) {
    if (PngWarningCostsPixels(text)) Of(png)->Keep(text);
  }
  static png_voidp Allocate(png_structp png, png_alloc_size_t bytes) {
    void* const memory = std::malloc(bytes);
    if (!memory) static_cast<PngCodec*>(png_get_mem_ptr(png))->no_memory_ = true;
    return memory;
  }
  static void Free(png_structp, png_voidp memory) { std::free(memory); }
  template <typename F>
  bool Guarded(F&& work);
  PngCodec* self() { return this; }  // what libpng gives back to the functions above

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char text_[128] = "";  // of the first error or warning; empty: none
  bool no_memory_ = false;

 private:
  static PngCodec* Of(png_structp png) { return static_cast<PngCodec*>(png_get_error_ptr(png)); }
  void Keep(const char* text);

  std::jmp_buf jump_;
};

void PngCodec::Keep(const char* text) {
  if (text_[0] != '\0') return;
  // Some messages name their chunk twice: "IDAT: IDAT: ...".
  constexpr size_t kPrefix = 6;
  const std::string_view all = text, prefix = all.substr(0, kPrefix);
  if (prefix.ends_with(": ") && all.substr(prefix.size()).starts_with(prefix)) text += kPrefix;
  std::strncpy(text_, text, sizeof text_ - 1);
}

// False if libpng failed in `work`, which must own nothing.
template <typename F>
bool PngCodec::Guarded(F&& work) {
  if (setjmp(jump_) != 0) return false;
  work();
  return true;
}

class PngReader : public PngCodec {
 public:
  PngReader() = default;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  enum Numbers { k8Bits, k16Bits, kStored };  // kStored: see DecodeOptions::as_stored
  // Before alpha is composed: 1 to 4 channels.
  std::optional<Refusal> Read(std::string_view bytes, Numbers numbers, Image* image);

 private:
  static void OnHeader(png_structp png, png_infop);
  static void OnRow(png_structp png, png_bytep row, png_uint_32 y, int pass);
  static void OnEnd(png_structp png, png_infop) {
    static_cast<PngReader*>(png_get_progressive_ptr(png))->ended_ = true;
  }

  std::optional<Refusal> Give(std::string_view bytes);
  bool HasAllRows() const;

  bool ended_ = false;
  Numbers numbers_ = k8Bits;
  size_t left_ = 0;         // bytes after the header
  Image* image_ = nullptr;  // has its size once the header is read
};

// All chunks before the pixels have been read: requests the numbers wanted, and pauses so the image
// can be allocated.
void PngReader::OnHeader(png_structp png, png_infop info) {
  const Numbers numbers = static_cast<PngReader*>(png_get_progressive_ptr(png))->numbers_;
  if (numbers == kStored) {
    png_set_packing(png);
    png_set_strip_alpha(png);
  } else {
    png_set_expand(png);
  }
  if (numbers != k16Bits) {
    png_set_strip_16(png);
  } else if (std::endian::native == std::endian::little) {
    png_set_swap(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  static_cast<PngReader*>(png_get_progressive_ptr(png))->left_ = png_process_data_pause(png, 0);
}

void PngReader::OnRow(png_structp png, png_bytep row, png_uint_32 y, int) {
  Image* const image = static_cast<PngReader*>(png_get_progressive_ptr(png))->image_;
  if (!row) return;
  const size_t samples = static_cast<size_t>(image->width) * static_cast<size_t>(image->channels);
  png_progressive_combine_row(png,
                              image->is_deep()
                                  ? reinterpret_cast<png_bytep>(image->deep.data() + y * samples)
                                  : image->row(static_cast<int>(y)),
                              row);
}

std::optional<Refusal> PngReader::Give(std::string_view bytes) {
  const bool good = Guarded([&] {
    const auto* data = reinterpret_cast<png_const_bytep>(bytes.data());
    png_process_data(png_, info_, const_cast<png_bytep>(data), bytes.size());
  });
  if (good && text_[0] == '\0') return std::nullopt;
  if (no_memory_) Throw(ErrorKind::kMemory, "no memory to decode a PNG");
  return Damaged(ImageFormat::kPng, text_);
}

// libpng does not report compressed data that end before the last row.
bool PngReader::HasAllRows() const {
  constexpr int kPasses = 7;  // of an interlaced image
  if (png_get_interlace_type(png_, info_) == PNG_INTERLACE_ADAM7)
    return png_get_current_pass_number(png_) == kPasses;
  return png_get_current_row_number(png_) == png_get_image_height(png_, info_);
}

std::optional<Refusal> PngReader::Read(std::string_view bytes, Numbers numbers, Image* image) {
  numbers_ = numbers;
  const bool good = Guarded([&] {
    png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, self(), OnError, OnWarning, self(),
                                    Allocate, Free);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) return;
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
    // Metadata: comments, profiles, ...
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_user_limits(png_, INT_MAX, INT_MAX);  // DecodeOptions has the limits
    png_set_chunk_malloc_max(png_, 0);
    png_set_progressive_read_fn(png_, this, OnHeader, OnRow, OnEnd);
  });
  if (!good || !info_) Throw(ErrorKind::kMemory, "cannot create a PNG decoder: {}", text_);
  image_ = image;
  if (auto refusal = Give(bytes)) return refusal;
  if (left_ > 0) {
    const int height = static_cast<int>(png_get_image_height(png_, info_)),
              width = static_cast<int>(png_get_image_width(png_, info_)),
              channels = png_get_channels(png_, info_);
    numbers == k16Bits ? image->ResizeDeep(height, width, channels)
                       : image->Resize(height, width, channels);
    if (auto refusal = Give(bytes.substr(bytes.size() - left_))) return refusal;
  }
  if (!ended_) return Damaged(ImageFormat::kPng, "the file ends early");
  if (!HasAllRows()) return Damaged(ImageFormat::kPng, "rows are missing");
  return std::nullopt;
}

// The last of two or four channels is alpha.
int ColorTypeOf(int channels) {
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  MXTRAIN_ASSERT(channels >= 1 && channels <= 4);
  return kTypes[channels - 1];
}

class PngWriter : public PngCodec {
 public:
  PngWriter() = default;
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  // `palette`: of gray values; null: none. Throws kMemory.
  std::string Write(const Image& image, const Palette* palette);

 private:
  static void Append(png_structp png, png_bytep bytes, size_t size) {
    if (static_cast<PngWriter*>(png_get_io_ptr(png))->Grow(bytes, size)) return;
    png_error(png, "no memory");
  }
  bool Grow(const png_byte* bytes, size_t size) noexcept;
  static void Flush(png_structp) {}

  std::string file_;
};

bool PngWriter::Grow(const png_byte* bytes, size_t size) noexcept {
  try {
    file_.append(reinterpret_cast<const char*>(bytes), size);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::string PngWriter::Write(const Image& image, const Palette* palette) {
  const bool good = Guarded([&] {
    png_ = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, self(), OnError, OnWarning, self(),
                                     Allocate, Free);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) return;
    png_set_write_fn(png_, this, Append, Flush);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(image.width),
                 static_cast<png_uint_32>(image.height), 8,
                 palette ? PNG_COLOR_TYPE_PALETTE : ColorTypeOf(image.channels), PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (palette) {
      png_color colours[256];
      for (size_t k = 0; k < palette->size(); ++k)
        colours[k] = {(*palette)[k][0], (*palette)[k][1], (*palette)[k][2]};
      png_set_PLTE(png_, info_, colours, 256);
    }
    png_write_info(png_, info_);
    for (int y = 0; y < image.height; ++y) png_write_row(png_, image.row(y));
    png_write_end(png_, nullptr);
  });
  if (!good || !info_) {
    Throw(ErrorKind::kMemory, "cannot write an image of {}x{} pixels as PNG: {}", image.width,
          image.height, text_);
  }
  return std::move(file_);
}

}  // namespace

// Parsed here, so an image over the limits is rejected with its size.
Expected<ImageInfo, Refusal> ProbePng(std::string_view bytes) {
  if (bytes.size() < 33 || bytes.substr(12, 4) != "IHDR")
    return Damaged(ImageFormat::kPng, "no header");
  constexpr int kChannels[] = {1, 0, 3, 3, 2, 0, 4};  // of the colour types
  const uint32_t width = BigEndian32(bytes, 16), height = BigEndian32(bytes, 20);
  const auto type = static_cast<unsigned char>(bytes[25]);
  const int channels = type < std::size(kChannels) ? kChannels[type] : 0;
  if (width == 0 || height == 0 || width > INT_MAX || height > INT_MAX || channels == 0)
    return Damaged(ImageFormat::kPng, "impossible header");
  const int bits = bytes[24] == 16 ? 16 : 8;
  return ImageInfo{
      ImageFormat::kPng, static_cast<int>(height), static_cast<int>(width), channels, 1, bits};
}

std::optional<Refusal> DecodePng(std::string_view bytes, const ImageInfo&, Image* image) {
  if (auto refusal = PngReader().Read(bytes, PngReader::k8Bits, image)) return refusal;
  ComposeOverWhite(image);
  return std::nullopt;
}

std::optional<Refusal> DecodeDeepPng(std::string_view bytes, const ImageInfo&, Image* image) {
  if (auto refusal = PngReader().Read(bytes, PngReader::k16Bits, image)) return refusal;
  ComposeOverWhite(image);
  return std::nullopt;
}

std::optional<Refusal> DecodeStoredPng(std::string_view bytes, const ImageInfo&, Image* image) {
  return PngReader().Read(bytes, PngReader::kStored, image);
}

namespace {
std::string Encode(const Image& image, const Palette* palette) {
  if (image.pixels.empty())
    Throw(ErrorKind::kData, "cannot write an empty image of {}x{} pixels as PNG", image.width,
          image.height);
  return PngWriter().Write(image, palette);
}
}  // namespace

std::string EncodePng(const Image& image) {
  return Encode(image, nullptr);
}
std::string EncodePng(const Image& image, const Palette& palette) {
  MXTRAIN_ASSERT(image.channels == 1);
  return Encode(image, &palette);
}

}  // namespace mxtrain::io
