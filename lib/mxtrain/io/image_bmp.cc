// SPDX-License-Identifier: Apache-2.0
// Windows and OS/2 bitmaps: 1, 4 or 8 bits with a palette, 16, 24 or 32 bits in channels;
// run-length encoding is rejected. A header must be fully consistent; then the rows are read
// directly into the image.
#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstdlib>
#include <iterator>

#include "mxtrain/base/format.h"
#include "mxtrain/io/internal/image_codecs.h"

namespace mxtrain::io {
namespace {

constexpr uint32_t kOs2Header = 12, kInfoHeader = 40;  // the shortest, and the shortest of Windows
constexpr size_t kMasks = 14 + kInfoHeader;            // their offset
enum Compression : uint32_t { kPlain = 0, kBitFields = 3 };

uint32_t LittleEndian(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

Refusal Damaged(std::string_view reason) {
  return Refusal{format("damaged or unsupported BMP: {}", reason)};
}

using Colour = std::array<uint8_t, 3>;

// Everything before the pixels.
struct Header {
  uint32_t size = 0;   // of the header, which starts at byte 14
  uint32_t begin = 0;  // of the pixels
  uint32_t planes = 0, bits = 0;
  uint32_t compression = kPlain;
  uint32_t colours = 0;  // declared palette size; 0: all that the bits can index
  bool from_top = false;
  std::array<uint32_t, 4> masks = {};  // of red, green, blue and alpha, for 16 and 32 bits

  bool has_palette() const { return bits <= 8; }
  size_t palette_entry() const { return size == kOs2Header ? 3 : 4; }
  // In colours; the palette ends where the pixels start.
  size_t palette_size() const {
    return std::min<size_t>(colours == 0 ? 1u << bits : colours, (begin - end()) / palette_entry());
  }
  bool has_masks() const { return bits == 16 || bits == 32; }
  uint32_t alpha() const { return masks[3]; }
  // After the 40-byte header; inside longer ones, which also have an alpha mask.
  size_t mask_count() const {
    return compression != kBitFields ? 0 : size > kInfoHeader + 12 ? 4 : 3;
  }
  // End of the header, including masks, before a palette.
  size_t end() const {
    return std::max(14 + size_t{size}, mask_count() == 0 ? 0 : kMasks + 4 * mask_count());
  }
};

// The file contains the whole header: checked by ProbeBmp.
Header ReadHeader(std::string_view bytes) {
  Header header{LittleEndian(bytes, 14, 4), LittleEndian(bytes, 10, 4)};
  const bool old = header.size == kOs2Header;
  header.planes = LittleEndian(bytes, old ? 22 : 26, 2);
  header.bits = LittleEndian(bytes, old ? 24 : 28, 2);
  if (old) return header;
  header.from_top = static_cast<int32_t>(LittleEndian(bytes, 22, 4)) < 0;
  header.compression = LittleEndian(bytes, 30, 4);
  header.colours = LittleEndian(bytes, 46, 4);
  return header;
}

bool IsRun(uint32_t mask) {
  return mask != 0 && std::has_single_bit((uint64_t{mask} >> std::countr_zero(mask)) + 1);
}

// With 32 bits every channel is one byte. With 16 bits a colour has 5 or 6 bits, alpha one. There
// are no gaps between colours.
bool AreMasks(const std::array<uint32_t, 4>& masks, uint32_t bits) {
  uint32_t taken = 0;
  for (size_t i = 0; i < 4; ++i) {
    const int count = std::popcount(masks[i]);
    if (i == 3 && count == 0) return true;
    const bool length = bits == 32 ? count == 8 : i == 3 ? count == 1 : count == 5 || count == 6;
    if (!length || !IsRun(masks[i]) || (masks[i] & taken) != 0 || uint64_t{masks[i]} >> bits != 0)
      return false;
    taken |= masks[i];
    if (i == 2 && !IsRun(taken)) return false;
  }
  return true;
}

// Without masks: 5 bits each, or bytes with alpha as the fourth.
std::optional<Refusal> ReadMasks(std::string_view bytes, Header* header) {
  constexpr std::array<uint32_t, 4> kOf16{0x7c00, 0x03e0, 0x001f, 0},
      kOf32{0x00ff0000, 0x0000ff00, 0x000000ff, 0xff000000};
  if (header->compression == kPlain) {
    header->masks = header->bits == 16 ? kOf16 : kOf32;
    return std::nullopt;
  }
  for (size_t i = 0; i < header->mask_count(); ++i)
    header->masks[i] = LittleEndian(bytes, kMasks + 4 * i, 4);
  if (AreMasks(header->masks, header->bits)) return std::nullopt;
  const auto& m = header->masks;
  return Damaged(format("channel masks {:08x}, {:08x}, {:08x} and {:08x} of {} bits", m[0], m[1],
                        m[2], m[3], header->bits));
}

std::optional<Refusal> CheckHeader(const Header& header, std::string_view bytes,
                                   const ImageInfo& info) {
  constexpr uint32_t kBits[] = {1, 4, 8, 16, 24, 32};
  if (std::find(std::begin(kBits), std::end(kBits), header.bits) == std::end(kBits))
    return Damaged(format("{} bits per pixel", header.bits));
  if (header.planes != 1) return Damaged(format("{} planes", header.planes));
  const bool compressed =
      header.compression != kPlain && !(header.compression == kBitFields && header.has_masks());
  if (compressed)
    return Damaged(format("compression {} of {} bits per pixel", header.compression, header.bits));
  if (header.has_palette() && header.colours > 1u << header.bits)
    return Damaged(
        format("a palette of {} colours for {} bits per pixel", header.colours, header.bits));
  if (header.begin < header.end()) return Damaged("the pixels begin within the header");
  if (header.has_palette() && header.palette_size() == 0) return Damaged("no palette");
  const uint64_t row_bytes = (static_cast<uint64_t>(info.width) * header.bits + 31) / 32 * 4;
  if (header.begin + row_bytes * static_cast<uint64_t>(info.height) > bytes.size())
    return Damaged("the file ends early");
  return std::nullopt;
}

// A colour missing from the palette is black.
std::array<Colour, 256> ReadPalette(std::string_view bytes, const Header& header) {
  std::array<Colour, 256> palette{};
  for (size_t i = 0; i < header.palette_size(); ++i) {
    const char* const bgr = bytes.data() + header.end() + i * header.palette_entry();
    for (size_t c = 0; c < 3; ++c) palette[i][c] = static_cast<uint8_t>(bgr[2 - c]);
  }
  return palette;
}

void ReadPaletteRow(const uint8_t* from, uint32_t bits, const std::array<Colour, 256>& palette,
                    int width, uint8_t* to) {
  const uint32_t per_byte = 8 / bits, mask = (1u << bits) - 1;
  for (uint32_t x = 0; x < static_cast<uint32_t>(width); ++x) {
    const uint32_t index =
        static_cast<uint32_t>(from[x / per_byte]) >> (8 - bits * (x % per_byte + 1)) & mask;
    to = std::copy_n(palette[index].data(), 3, to);
  }
}

// Expands a channel of 1 to 8 bits to 8 by repeating its highest bits below.
uint8_t Channel(uint32_t pixel, uint32_t mask) {
  const int bits = std::popcount(mask);
  const uint32_t value = (pixel & mask) >> std::countr_zero(mask) << (8 - bits);
  uint32_t filled = value;
  for (int have = bits; have < 8; have += bits) filled |= value >> have;
  return static_cast<uint8_t>(filled);
}

void ReadMaskedRow(const uint8_t* from, const Header& header, int width, int channels,
                   uint8_t* to) {
  const std::string_view bytes(reinterpret_cast<const char*>(from),
                               static_cast<size_t>(width) * (header.bits / 8));
  for (size_t at = 0; at < bytes.size(); at += header.bits / 8) {
    const uint32_t pixel = LittleEndian(bytes, at, header.bits / 8);
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c)
      *to++ = Channel(pixel, header.masks[c]);
  }
}

void ReadBgrRow(const uint8_t* from, int width, uint8_t* to) {
  for (int x = 0; x < width; ++x, from += 3) {
    for (int c = 2; c >= 0; --c) *to++ = from[c];
  }
}

// With 32 bits and no masks the fourth byte is alpha in some files and always 0 in most.
void DropEmptyAlpha(Image* image) {
  const size_t pixels = image->pixels.size() / 4;
  for (size_t i = 0; i < pixels; ++i) {
    if (image->pixels[4 * i + 3] != 0) return;
  }
  for (size_t i = 0; i < pixels; ++i) image->pixels[4 * i + 3] = 255;
}

}  // namespace

Expected<ImageInfo, Refusal> ProbeBmp(std::string_view bytes) {
  if (bytes.size() < 26) return Damaged("no header");
  const uint32_t header = LittleEndian(bytes, 14, 4);
  const bool old = header == kOs2Header;
  constexpr uint32_t kSizes[] = {12, 40, 52, 56, 64, 108, 124};
  if (std::find(std::begin(kSizes), std::end(kSizes), header) == std::end(kSizes))
    return Damaged(format("a header of {} bytes", header));
  if (bytes.size() < 14 + size_t{header}) return Damaged("the file ends early");
  const auto edge = [&](size_t at, size_t old_at) -> int64_t {
    if (old) return LittleEndian(bytes, old_at, 2);
    return static_cast<int32_t>(LittleEndian(bytes, at, 4));
  };
  const int64_t width = edge(18, 18), height = edge(22, 20);  // height below 0: rows from the top
  if (width <= 0 || height == 0 || height == INT_MIN) return Damaged("impossible header");
  return ImageInfo{ImageFormat::kBmp, static_cast<int>(std::abs(height)), static_cast<int>(width),
                   3};
}

std::optional<Refusal> DecodeBmp(std::string_view bytes, const ImageInfo& info, Image* image) {
  Header header = ReadHeader(bytes);
  if (auto damage = CheckHeader(header, bytes, info)) return damage;
  if (header.has_masks()) {
    if (auto damage = ReadMasks(bytes, &header)) return damage;
  }
  const auto palette =
      header.has_palette() ? ReadPalette(bytes, header) : std::array<Colour, 256>();
  const size_t row_bytes = (static_cast<size_t>(info.width) * header.bits + 31) / 32 * 4;
  image->Resize(info.height, info.width, header.alpha() != 0 ? 4 : 3);
  for (int y = 0; y < info.height; ++y) {
    const auto* row = reinterpret_cast<const uint8_t*>(bytes.data()) + header.begin +
                      row_bytes * static_cast<size_t>(y);
    uint8_t* const to = image->row(header.from_top ? y : info.height - 1 - y);
    if (header.has_palette()) {
      ReadPaletteRow(row, header.bits, palette, info.width, to);
    } else if (header.has_masks()) {
      ReadMaskedRow(row, header, info.width, image->channels, to);
    } else {
      ReadBgrRow(row, info.width, to);
    }
  }
  if (header.bits == 32 && header.compression == kPlain) DropEmptyAlpha(image);
  ComposeOverWhite(image);
  return std::nullopt;
}

}  // namespace mxtrain::io
