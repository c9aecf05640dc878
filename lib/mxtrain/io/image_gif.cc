// SPDX-License-Identifier: Apache-2.0
// The first image of a GIF, by giflib: nothing behind it is read. It stands on the canvas of the
// whole file, which is as large as needed, also if the file says less. What it leaves open has the
// transparent colour, or the first one, as in Pillow.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/io/internal/image_codecs.h"

namespace mxtrain::io {
namespace {

using Colour = std::array<uint8_t, 3>;
constexpr Colour kWhite{255, 255, 255};

// A file, opened and read up to the pixels of its first image.
class FirstImage {
 public:
  explicit FirstImage(std::string_view bytes) : bytes_(bytes), left_(bytes) {}
  ~FirstImage() {
    if (gif_) DGifCloseFile(gif_, nullptr);
  }
  FirstImage(const FirstImage&) = delete;
  FirstImage& operator=(const FirstImage&) = delete;

  std::optional<Refusal> Open();
  const GifImageDesc& place() const { return gif_->Image; }
  int height() const { return std::max<int>(gif_->SHeight, place().Top + place().Height); }
  int width() const { return std::max<int>(gif_->SWidth, place().Left + place().Width); }
  // Colours of all indices, over white; those that are not in the file are black.
  std::vector<Colour> Palette() const;
  // Of pixels that the image does not cover.
  size_t open_index() const { return static_cast<size_t>(std::max(0, transparent_)); }
  // Whether every compressed code means something, up to the last pixel. giflib decodes others to
  // some pixels. Instead of ReadRow.
  bool AreCodesSound();
  // False if a row is missing.
  bool ReadRow(std::vector<GifPixelType>* row) {
    return DGifGetLine(gif_, row->data(), static_cast<int>(row->size())) == GIF_OK;
  }
  Refusal Failure() const { return FailureOf(gif_->Error); }

 private:
  static Refusal FailureOf(int code);
  static int Read(GifFileType* gif, GifByteType* to, int size);
  bool ReadExtension();

  std::string_view bytes_, left_;
  GifFileType* gif_ = nullptr;
  int transparent_ = NO_TRANSPARENT_COLOR;
};

int FirstImage::Read(GifFileType* gif, GifByteType* to, int size) {
  std::string_view& left = static_cast<FirstImage*>(gif->UserData)->left_;
  const size_t count = std::min(left.size(), static_cast<size_t>(std::max(0, size)));
  if (count > 0) std::memcpy(to, left.data(), count);
  left.remove_prefix(count);
  return static_cast<int>(count);
}

Refusal FirstImage::FailureOf(int code) {
  if (code == D_GIF_ERR_NOT_ENOUGH_MEM) Throw(ErrorKind::kMemory, "no memory to decode a GIF");
  if (code == D_GIF_ERR_READ_FAILED || code == D_GIF_ERR_EOF_TOO_SOON ||
      code == D_GIF_ERR_NO_SCRN_DSCR)
    return Damaged(ImageFormat::kGif, "the file ends early");
  const char* const text = GifErrorString(code);
  return Damaged(ImageFormat::kGif, text ? text : "the compressed data are damaged");
}

// Also keeps the transparent colour. False if it fails.
bool FirstImage::ReadExtension() {
  int code = 0;
  GifByteType* block = nullptr;
  if (DGifGetExtension(gif_, &code, &block) != GIF_OK) return false;
  GraphicsControlBlock control;
  if (code == GRAPHICS_EXT_FUNC_CODE && block &&
      DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
    transparent_ = control.TransparentColor;
  while (block) {
    if (DGifGetExtensionNext(gif_, &block) != GIF_OK) return false;
  }
  return true;
}

std::optional<Refusal> FirstImage::Open() {
  int code = 0;
  gif_ = DGifOpen(this, Read, &code);
  if (!gif_) return FailureOf(code);
  for (;;) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif_, &type) != GIF_OK) return Failure();
    if (type == TERMINATE_RECORD_TYPE) return Damaged(ImageFormat::kGif, "no image");
    if (type == IMAGE_DESC_RECORD_TYPE) break;
    if (!ReadExtension()) return Failure();
  }
  if (DGifGetImageDesc(gif_) != GIF_OK) return Failure();
  if (place().Width <= 0 || place().Height <= 0)
    return Damaged(ImageFormat::kGif, "impossible header");
  return std::nullopt;
}

bool FirstImage::AreCodesSound() {
  constexpr size_t kMostCodes = 4096;
  // A byte before the codes says how many bits a pixel has.
  const auto bits = static_cast<unsigned char>(bytes_[bytes_.size() - left_.size() - 1]);
  const auto clear = size_t{1} << bits;
  std::vector<size_t> lengths(kMostCodes, 1);  // in pixels
  const size_t all = static_cast<size_t>(place().Width) * static_cast<size_t>(place().Height);
  size_t next = clear + 2, last = 0;  // the code that is defined next; length of the one before
  for (size_t pixels = 0; pixels < all;) {
    int read = 0;
    if (DGifGetLZCodes(gif_, &read) != GIF_OK || read < 0) return false;
    const auto code = static_cast<size_t>(read);
    if (code == clear) {
      next = clear + 2;
      last = 0;
      continue;
    }
    const bool known = code < clear || (code > clear + 1 && code < next);
    const bool defines = last > 0 && next < kMostCodes;
    if (!known && !(defines && code == next)) return false;
    if (defines) lengths[next++] = last + 1;
    last = lengths[code];
    pixels += last;
  }
  return true;
}

std::vector<Colour> FirstImage::Palette() const {
  std::vector<Colour> colours(256, Colour{});
  const ColorMapObject* const map = place().ColorMap ? place().ColorMap : gif_->SColorMap;
  for (size_t i = 0; i < colours.size(); ++i) {
    const auto level = static_cast<uint8_t>(i);
    if (!map) colours[i] = {level, level, level};
    if (map && i < static_cast<size_t>(map->ColorCount))
      colours[i] = {map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue};
  }
  if (transparent_ >= 0) colours[static_cast<size_t>(transparent_)] = kWhite;
  return colours;
}

// The rows of an image in the order in which they are stored.
std::vector<int> StoredRows(int height, bool interlaced) {
  std::vector<int> rows;
  constexpr struct { int first, step; } kPasses[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  for (const auto& [first, step] : kPasses) {
    for (int y = first; interlaced && y < height; y += step) rows.push_back(y);
  }
  for (int y = 0; !interlaced && y < height; ++y) rows.push_back(y);
  return rows;
}

}  // namespace

Expected<ImageInfo, Refusal> ProbeGif(std::string_view bytes) {
  FirstImage first(bytes);
  if (auto damage = first.Open()) return *std::move(damage);
  return ImageInfo{ImageFormat::kGif, first.height(), first.width(), 3};
}

std::optional<Refusal> DecodeGif(std::string_view bytes, const ImageInfo& info, Image* image) {
  FirstImage codes(bytes);
  if (auto damage = codes.Open()) return damage;
  if (!codes.AreCodesSound())
    return Damaged(ImageFormat::kGif, "the compressed data are damaged or end early");
  FirstImage first(bytes);
  if (auto damage = first.Open()) return damage;
  const std::vector<Colour> palette = first.Palette();
  const GifImageDesc& place = first.place();
  image->Resize(info.height, info.width, 3);
  const Colour& open = palette[first.open_index()];
  for (size_t i = 0; i < image->pixels.size(); i += 3)
    std::copy(open.begin(), open.end(), image->pixels.data() + i);
  std::vector<GifPixelType> indices(static_cast<size_t>(place.Width));
  for (const int y : StoredRows(place.Height, place.Interlace)) {
    if (!first.ReadRow(&indices)) return first.Failure();
    uint8_t* to = image->row(place.Top + y) + 3 * place.Left;
    for (const GifPixelType index : indices) to = std::copy_n(palette[index].data(), 3, to);
  }
  return std::nullopt;
}

}  // namespace mxtrain::io
