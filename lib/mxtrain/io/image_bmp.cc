// SPDX-License-Identifier: Apache-2.0
// Windows and OS/2 bitmaps: 1, 4 or 8 bits with a palette, also run-length encoded; 16, 24 or 32
// bits in channels. A header must be fully consistent; then stb_image reads the rows behind one
// that is written here (stb_reader.h).
#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstdlib>
#include <iterator>

#include "mxtrain/base/format.h"
#include "mxtrain/io/internal/image_codecs.h"
#include "mxtrain/io/internal/little_endian.h"
#include "mxtrain/io/internal/stb_reader.h"

namespace mxtrain::io {
namespace {

constexpr uint32_t kOs2Header = 12, kInfoHeader = 40;  // the shortest, and the shortest of Windows
constexpr uint32_t kMaskHeader = 108;                  // the shortest with all four masks, written
constexpr size_t kMasks = 14 + kInfoHeader;            // their offset
enum Compression : uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kBitFields = 3 };

// Everything before the pixels.
struct BmpHeader {
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
  bool has_runs() const { return compression == kRuns8 || compression == kRuns4; }
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
BmpHeader ReadBmpHeader(std::string_view bytes) {
  BmpHeader header{LittleEndian(bytes, 14, 4), LittleEndian(bytes, 10, 4)};
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

// Without masks: 5 bits each, or bytes, of which the fourth is reserved whatever it holds.
std::optional<Refusal> ReadMasks(std::string_view bytes, BmpHeader* header) {
  constexpr std::array<uint32_t, 4> kOf16{0x7c00, 0x03e0, 0x001f, 0},
      kOf32{0x00ff0000, 0x0000ff00, 0x000000ff, 0};
  if (header->compression == kPlain) {
    header->masks = header->bits == 16 ? kOf16 : kOf32;
    return std::nullopt;
  }
  for (size_t i = 0; i < header->mask_count(); ++i)
    header->masks[i] = LittleEndian(bytes, kMasks + 4 * i, 4);
  if (AreMasks(header->masks, header->bits)) return std::nullopt;
  const auto& m = header->masks;
  return Damaged(ImageFormat::kBmp,
                 format("channel masks {:08x}, {:08x}, {:08x} and {:08x} of {} bits", m[0], m[1],
                        m[2], m[3], header->bits));
}

size_t RowBytes(int width, uint32_t bits) {
  return (static_cast<size_t>(width) * bits + 31) / 32 * 4;
}

std::optional<Refusal> CheckHeader(const BmpHeader& header, std::string_view bytes,
                                   const ImageInfo& info) {
  constexpr uint32_t kBits[] = {1, 4, 8, 16, 24, 32};
  if (std::find(std::begin(kBits), std::end(kBits), header.bits) == std::end(kBits))
    return Damaged(ImageFormat::kBmp, format("{} bits per pixel", header.bits));
  if (header.planes != 1) return Damaged(ImageFormat::kBmp, format("{} planes", header.planes));
  const bool known = header.compression == kPlain ||
                     (header.compression == kBitFields && header.has_masks()) ||
                     (header.compression == kRuns8 && header.bits == 8) ||
                     (header.compression == kRuns4 && header.bits == 4);
  if (!known)
    return Damaged(ImageFormat::kBmp,
                   format("compression {} of {} bits per pixel", header.compression, header.bits));
  if (header.has_palette() && header.colours > 1u << header.bits)
    return Damaged(ImageFormat::kBmp, format("a palette of {} colours for {} bits per pixel",
                                             header.colours, header.bits));
  if (header.begin < header.end())
    return Damaged(ImageFormat::kBmp, "the pixels begin within the header");
  if (header.has_palette() && header.palette_size() == 0)
    return Damaged(ImageFormat::kBmp, "no palette");
  // The last row may lack what fills it up to 4 bytes.
  const size_t row_bytes = RowBytes(info.width, header.bits),
               last = (static_cast<size_t>(info.width) * header.bits + 7) / 8,
               needed = header.has_runs()
                            ? 0
                            : row_bytes * (static_cast<size_t>(info.height) - 1) + last;
  if (header.begin + needed > bytes.size())
    return Damaged(ImageFormat::kBmp, "the file ends early");
  return std::nullopt;
}

// The pixels of a run-length encoded image, in rows of 8 bits as stb_image reads them: a byte pair
// is a run of one value (two in turn with 4 bits), or, after a zero, the end of a row (0), of the
// image (1), a step to the right and up (2), or so many values as they are. Skipped pixels are 0;
// a run that is longer than its row is cut off. Nothing if rows are missing.
std::optional<std::string> UnpackRuns(std::string_view packed, bool nibbles, int width,
                                      int height) {
  const size_t row_bytes = RowBytes(width, 8), rows = static_cast<size_t>(height),
               columns = static_cast<size_t>(width);
  std::string pixels(row_bytes * rows, '\0');
  size_t at = 0, x = 0, y = 0;
  const auto put = [&](int value) {
    if (x < columns) pixels[y * row_bytes + x++] = static_cast<char>(value);
  };
  const auto value_of = [&](unsigned char byte, size_t i) {
    return !nibbles ? byte : i % 2 == 0 ? byte >> 4 : byte & 15;
  };
  while (y + 1 < rows || (y < rows && x < columns)) {
    if (packed.size() - at < 2) return std::nullopt;
    const auto count = static_cast<unsigned char>(packed[at]),
               second = static_cast<unsigned char>(packed[at + 1]);
    at += 2;
    if (count > 0) {
      for (size_t i = 0; i < count; ++i) put(value_of(second, i));
    } else if (second == 0) {
      x = 0;
      ++y;
    } else if (second == 1) {
      return std::nullopt;
    } else if (second == 2) {
      if (packed.size() - at < 2) return std::nullopt;
      x += static_cast<unsigned char>(packed[at]);
      y += static_cast<unsigned char>(packed[at + 1]) + x / columns;
      x %= columns;
      at += 2;
    } else {
      const size_t stored = nibbles ? (second + size_t{1}) / 2 : second;
      if (packed.size() - at < stored) return std::nullopt;
      for (size_t i = 0; i < second; ++i)
        put(value_of(static_cast<unsigned char>(packed[at + (nibbles ? i / 2 : i)]), i));
      at += stored + stored % 2;
      if (at > packed.size()) at = packed.size();
    }
  }
  return pixels;
}

// The header that stb_image reads: with a full palette, in which a missing colour is black, or with
// four masks, or plain of 24 bits.
std::string WriteBmpHeader(const BmpHeader& header, std::string_view bytes, const ImageInfo& info) {
  const uint32_t bits = header.has_runs() ? 8 : header.bits;
  const uint32_t size = header.has_masks() ? kMaskHeader : kInfoHeader;
  const uint32_t colours = header.has_palette() ? 1u << bits : 0;
  std::string out = "BM";
  const auto put = [&](int64_t value, int count) {
    PutLittleEndian(static_cast<uint32_t>(value), count, &out);
  };
  put(0, 8);
  put(14 + size + 4 * colours, 4);
  put(size, 4);
  put(info.width, 4);
  put(header.from_top ? -info.height : info.height, 4);
  put(1, 2);
  put(bits, 2);
  put(header.has_masks() ? kBitFields : kPlain, 4);
  out.append(20, '\0');
  if (header.has_masks()) {
    for (const uint32_t mask : header.masks) put(mask, 4);
    out.append(kMaskHeader - kInfoHeader - 16, '\0');
  }
  for (size_t i = 0; i < colours; ++i) {
    const bool given = i < header.palette_size();
    const size_t at = header.end() + i * header.palette_entry();
    out += given ? std::string(bytes.substr(at, 3)) + '\0' : std::string(4, '\0');
  }
  return out;
}

}  // namespace

Expected<ImageInfo, Refusal> ProbeBmp(std::string_view bytes) {
  if (bytes.size() < 26) return Damaged(ImageFormat::kBmp, "no header");
  const uint32_t header = LittleEndian(bytes, 14, 4);
  const bool old = header == kOs2Header;
  constexpr uint32_t kSizes[] = {12, 40, 52, 56, 64, 108, 124};
  if (std::find(std::begin(kSizes), std::end(kSizes), header) == std::end(kSizes))
    return Damaged(ImageFormat::kBmp, format("a header of {} bytes", header));
  if (bytes.size() < 14 + size_t{header}) return Damaged(ImageFormat::kBmp, "the file ends early");
  const auto edge = [&](size_t at, size_t old_at) -> int64_t {
    if (old) return LittleEndian(bytes, old_at, 2);
    return static_cast<int32_t>(LittleEndian(bytes, at, 4));
  };
  const int64_t width = edge(18, 18), height = edge(22, 20);  // height below 0: rows from the top
  if (width <= 0 || height == 0 || height == INT_MIN)
    return Damaged(ImageFormat::kBmp, "impossible header");
  return ImageInfo{ImageFormat::kBmp, static_cast<int>(std::abs(height)), static_cast<int>(width),
                   3};
}

std::optional<Refusal> DecodeBmp(std::string_view bytes, const ImageInfo& info, Image* image) {
  BmpHeader header = ReadBmpHeader(bytes);
  if (auto damage = CheckHeader(header, bytes, info)) return damage;
  if (header.has_masks()) {
    if (auto damage = ReadMasks(bytes, &header)) return damage;
  }
  std::string_view rows = bytes.substr(header.begin);
  std::optional<std::string> unpacked;
  if (header.has_runs()) {
    unpacked = UnpackRuns(rows, header.compression == kRuns4, info.width, info.height);
    if (!unpacked) return Damaged(ImageFormat::kBmp, "the file ends early");
    rows = *unpacked;
  }
  if (auto damage = DecodeWithStb({WriteBmpHeader(header, bytes, info), rows}, info, image))
    return damage;
  ComposeOverWhite(image);
  return std::nullopt;
}

}  // namespace mxtrain::io
