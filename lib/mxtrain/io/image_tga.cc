// SPDX-License-Identifier: Apache-2.0
// Truevision's TGA: 8 bits with a palette, gray (8 bits, or 8 and alpha), colour in 16 (5 bits
// each), 24 or 32 bits (with alpha), each also in runs; gray of 1 bit. The whole file is checked,
// then stb_image reads it behind a header that is written here (stb_reader.h): it would take the
// number of the palette's first colour for a number of bytes, knows no gray of 1 bit, and overlooks
// that rows may run from the right.
#include <algorithm>

#include "mxtrain/io/internal/image_codecs.h"
#include "mxtrain/io/internal/little_endian.h"
#include "mxtrain/io/internal/stb_reader.h"

namespace mxtrain::io {
namespace {

constexpr size_t kHeader = 18;
constexpr uint32_t kPalette = 1, kColour = 2, kGray = 3, kRuns = 8;  // image types; runs: added
constexpr uint32_t kColours = 256;                                   // of a palette
constexpr uint32_t kFromRight = 0x10, kFromTop = 0x20, kReserved = 0xc0;  // descriptor bits

struct TgaHeader {
  uint32_t comment = 0;  // bytes after the header
  uint32_t palettes = 0, type = 0;
  uint32_t first_colour = 0, colours = 0, colour_bits = 0;
  uint32_t width = 0, height = 0, bits = 0, descriptor = 0;

  bool has_palette() const { return type == kPalette; }
  size_t colour_bytes() const { return (size_t{colour_bits} + 7) / 8; }
  size_t palette_begin() const { return kHeader + comment; }
  size_t begin() const {  // of the pixels
    return palette_begin() + (palettes == 0 ? 0 : colours * colour_bytes());
  }
  size_t row_bytes() const { return (size_t{width} * bits + 7) / 8; }
  bool in_runs = false;
};

TgaHeader ReadTgaHeader(std::string_view bytes) {
  const auto at = [&](size_t offset, size_t size) { return LittleEndian(bytes, offset, size); };
  TgaHeader header{at(0, 1), at(1, 1),  at(2, 1),  at(3, 2),  at(5, 2),
                   at(7, 1), at(12, 2), at(14, 2), at(16, 1), at(17, 1)};
  header.in_runs = (header.type & kRuns) != 0;
  header.type &= ~kRuns;
  return header;
}

bool IsConsistent(const TgaHeader& h) {
  if (h.palettes > 1 || h.width == 0 || h.height == 0 || (h.descriptor & kReserved) != 0)
    return false;
  const auto is = [](uint32_t bits, std::initializer_list<uint32_t> allowed) {
    return std::find(allowed.begin(), allowed.end(), bits) != allowed.end();
  };
  if (h.type == kPalette)
    return h.palettes == 1 && h.colours > 0 && h.first_colour + h.colours <= kColours &&
           is(h.colour_bits, {16, 24, 32}) && is(h.bits, {8});
  if (h.palettes == 1 && !is(h.colour_bits, {0, 8, 15, 16, 24, 32})) return false;
  return (h.type == kColour && is(h.bits, {16, 24, 32})) ||
         (h.type == kGray && (is(h.bits, {8, 16}) || (h.bits == 1 && !h.in_runs)));
}

// Whether runs give all pixels, and none continues in the next row, which the format forbids: each
// begins with a byte of its length, and repeats a pixel or, without the highest bit, lists them.
bool AreRunsWhole(const TgaHeader& header, std::string_view packed) {
  const size_t pixel = header.bits / 8, all = size_t{header.width} * header.height;
  for (size_t done = 0, at = 0; done < all;) {
    if (at >= packed.size()) return false;
    const auto command = static_cast<unsigned char>(packed[at++]);
    const size_t count = size_t{1} + (command & 0x7f);
    const bool repeats = (command & 0x80) != 0;
    if (repeats && done % header.width + count > header.width) return false;
    const size_t bytes = (repeats ? 1 : count) * pixel;
    if (packed.size() - at < bytes) return false;
    at += bytes;
    done += count;
  }
  return true;
}

// Gray of 1 bit, the first pixel in the highest, as gray of 8.
std::string ExpandBits(std::string_view rows, const TgaHeader& header) {
  std::string pixels;
  pixels.reserve(size_t{header.width} * header.height);
  for (size_t y = 0; y < header.height; ++y) {
    for (size_t x = 0; x < header.width; ++x) {
      const auto byte = static_cast<unsigned char>(rows[y * header.row_bytes() + x / 8]);
      pixels += (byte >> (7 - x % 8) & 1) != 0 ? '\xff' : '\0';
    }
  }
  return pixels;
}

// Without a comment; the palette has a colour for every byte, black where none is given.
std::string WriteTgaHeader(const TgaHeader& header, std::string_view bytes) {
  std::string out;
  const auto put = [&](uint32_t value, int size) { PutLittleEndian(value, size, &out); };
  const bool palette = header.has_palette();
  put(0, 1);
  put(palette ? 1 : 0, 1);
  put(header.type | (header.in_runs ? kRuns : 0), 1);
  put(0, 2);
  put(palette ? kColours : 0, 2);
  put(palette ? header.colour_bits : 0, 1);
  put(0, 4);
  put(header.width, 2);
  put(header.height, 2);
  put(std::max(8u, header.bits), 1);
  put(header.descriptor & kFromTop, 1);
  if (!palette) return out;
  std::string colours(header.first_colour * header.colour_bytes(), '\0');
  colours += bytes.substr(header.palette_begin(), header.colours * header.colour_bytes());
  colours.resize(kColours * header.colour_bytes());
  return out + colours;
}

}  // namespace

bool LooksLikeTga(std::string_view bytes) {
  return bytes.size() >= kHeader && IsConsistent(ReadTgaHeader(bytes));
}

Expected<ImageInfo, Refusal> ProbeTga(std::string_view bytes) {
  const TgaHeader header = ReadTgaHeader(bytes);
  const uint32_t bits = header.has_palette() ? header.colour_bits : header.bits;
  const int channels = header.type == kGray ? (bits == 16 ? 2 : 1) : bits == 32 ? 4 : 3;
  return ImageInfo{ImageFormat::kTga, static_cast<int>(header.height),
                   static_cast<int>(header.width), channels};
}

std::optional<Refusal> DecodeTga(std::string_view bytes, const ImageInfo& info, Image* image) {
  const TgaHeader header = ReadTgaHeader(bytes);
  if (header.begin() > bytes.size()) return Damaged(ImageFormat::kTga, "the file ends early");
  std::string_view rows = bytes.substr(header.begin());
  const bool whole = header.in_runs ? AreRunsWhole(header, rows)
                                    : rows.size() >= header.row_bytes() * header.height;
  if (!whole)
    return Damaged(ImageFormat::kTga, "the file ends early, or a run continues in the next row");
  std::string expanded;
  if (header.bits == 1) {
    expanded = ExpandBits(rows, header);
    rows = expanded;
  }
  if (auto damage = DecodeWithStb({WriteTgaHeader(header, bytes), rows}, info, image))
    return damage;
  constexpr int kMirrored = 2;
  if ((header.descriptor & kFromRight) != 0) ApplyOrientation(kMirrored, image);
  ComposeOverWhite(image);
  return std::nullopt;
}

}  // namespace mxtrain::io
