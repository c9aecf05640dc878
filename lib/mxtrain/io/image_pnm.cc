// SPDX-License-Identifier: Apache-2.0
// Netpbm's portable maps: bits (P1, P4), gray (P2, P5) and RGB (P3, P6), as text or binary. A
// binary map of 8 bits whose largest value is 255 goes to stb_image as it is; others are scaled to
// such a one first, since stb_image reads no text, scales nothing, and takes 16 bits in the
// processor's byte order (stb_reader.h).
#include <algorithm>
#include <limits>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/io/internal/image_codecs.h"
#include "mxtrain/io/internal/stb_reader.h"

namespace mxtrain::io {
namespace {

bool IsBlank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Numbers in text, with comments from # to the end of a line.
class Numbers {
 public:
  Numbers(std::string_view bytes, size_t at) : bytes_(bytes), at_(at) {}

  // At most `most`, of decimal digits only. `digits`: how many at most.
  std::optional<int64_t> Next(int64_t most, size_t digits = 10) {
    while (at_ < bytes_.size() && (IsBlank(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#') {
        while (at_ < bytes_.size() && bytes_[at_] != '\n' && bytes_[at_] != '\r') ++at_;
      } else {
        ++at_;
      }
    }
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < bytes_.size() && at_ - begin < digits; ++at_) {
      if (bytes_[at_] < '0' || bytes_[at_] > '9') break;
      value = value * 10 + (bytes_[at_] - '0');
    }
    return at_ == begin || value > most ? std::nullopt : std::optional(value);
  }
  // After the blank that ends a header.
  std::optional<size_t> SkipBlank() {
    if (at_ >= bytes_.size() || !IsBlank(bytes_[at_])) return std::nullopt;
    return ++at_;
  }

 private:
  std::string_view bytes_;
  size_t at_;
};

struct PnmHeader {
  char kind = '5';  // '1' .. '6'
  int width = 0, height = 0, most = 1;
  size_t begin = 0;  // of the pixels

  bool is_text() const { return kind <= '3'; }
  bool is_bits() const { return kind == '1' || kind == '4'; }
  int channels() const { return kind == '3' || kind == '6' ? 3 : 1; }
  size_t samples() const {
    return static_cast<size_t>(width) * static_cast<size_t>(height) *
           static_cast<size_t>(channels());
  }
  size_t row_bytes() const {  // of a binary one
    if (kind == '4') return (static_cast<size_t>(width) + 7) / 8;
    return static_cast<size_t>(width) * static_cast<size_t>(channels()) * (most > 255 ? 2 : 1);
  }
};

Expected<PnmHeader, Refusal> ReadPnmHeader(std::string_view bytes) {
  constexpr int64_t kLongest = 1 << 30, kMost = 65535;
  PnmHeader header;
  header.kind = bytes[1];
  Numbers numbers(bytes, 2);
  const auto width = numbers.Next(kLongest), height = numbers.Next(kLongest);
  if (width.value_or(0) == 0 || height.value_or(0) == 0)
    return Damaged(ImageFormat::kPnm, "impossible header");
  header.width = static_cast<int>(*width);
  header.height = static_cast<int>(*height);
  if (!header.is_bits()) {
    const auto most = numbers.Next(kMost);
    if (most.value_or(0) == 0)
      return Damaged(ImageFormat::kPnm,
                     format("the largest value is not a number from 1 to {}", kMost));
    header.most = static_cast<int>(*most);
  }
  const auto begin = numbers.SkipBlank();
  if (!begin) return Damaged(ImageFormat::kPnm, "the file ends early");
  header.begin = *begin;
  return header;
}

// 0 .. most becomes 0 .. the largest T, rounded; a sample above is white.
template <typename T>
T Scaled(int64_t sample, int most) {
  constexpr int64_t kWhite = std::numeric_limits<T>::max();
  return static_cast<T>((std::min<int64_t>(sample, most) * kWhite * 2 + most) / (2 * most));
}

// Nothing if a sample is missing or too large.
template <typename T>
std::optional<std::vector<T>> FromText(std::string_view bytes, const PnmHeader& header) {
  if (bytes.size() - header.begin < header.samples()) return std::nullopt;  // a digit each
  std::vector<T> pixels;
  pixels.reserve(header.samples());
  Numbers numbers(bytes, header.begin);
  for (size_t i = 0; i < header.samples(); ++i) {
    const auto sample = numbers.Next(header.most, header.is_bits() ? 1 : 10);
    if (!sample) return std::nullopt;
    pixels.push_back(
        Scaled<T>(header.is_bits() ? 1 - *sample : *sample, header.most));  // 1 is black
  }
  return pixels;
}

template <typename T>
std::vector<T> FromBinary(std::string_view rows, const PnmHeader& header) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(rows[at]); };
  std::vector<T> pixels;
  pixels.reserve(header.samples());
  if (header.kind == '4') {
    for (size_t y = 0; y < static_cast<size_t>(header.height); ++y) {
      for (size_t x = 0; x < static_cast<size_t>(header.width); ++x) {
        const bool black = (byte(y * header.row_bytes() + x / 8) >> (7 - x % 8) & 1) != 0;
        pixels.push_back(black ? T{0} : std::numeric_limits<T>::max());
      }
    }
    return pixels;
  }
  for (size_t i = 0; i < header.samples(); ++i) {
    const int sample = header.most > 255 ? byte(2 * i) << 8 | byte(2 * i + 1) : byte(i);
    pixels.push_back(Scaled<T>(sample, header.most));
  }
  return pixels;
}

// Scaled to T, of a file that is whole.
template <typename T>
Expected<std::vector<T>, Refusal> ReadSamples(std::string_view bytes, const PnmHeader& header) {
  if (header.is_text()) {
    auto samples = FromText<T>(bytes, header);
    if (!samples) return Damaged(ImageFormat::kPnm, "samples are missing or too large");
    return *std::move(samples);
  }
  const std::string_view rows = bytes.substr(header.begin);
  if (rows.size() < header.row_bytes() * static_cast<size_t>(header.height))
    return Damaged(ImageFormat::kPnm, "the file ends early");
  return FromBinary<T>(rows, header);
}

}  // namespace

Expected<ImageInfo, Refusal> ProbePnm(std::string_view bytes) {
  const auto header = ReadPnmHeader(bytes);
  if (!header) return header.error();
  return ImageInfo{ImageFormat::kPnm,          header->height, header->width, header->channels(), 1,
                   header->most > 255 ? 16 : 8};
}

std::optional<Refusal> DecodePnm(std::string_view bytes, const ImageInfo& info, Image* image) {
  const PnmHeader header = *ReadPnmHeader(bytes);
  std::string_view rows = bytes.substr(header.begin);
  std::vector<uint8_t> scaled;
  const bool as_it_is = !header.is_text() && header.most == 255;
  if (as_it_is && rows.size() < header.row_bytes() * static_cast<size_t>(header.height))
    return Damaged(ImageFormat::kPnm, "the file ends early");
  if (!as_it_is) {
    auto samples = ReadSamples<uint8_t>(bytes, header);
    if (!samples) return samples.error();
    scaled = *std::move(samples);
    rows = {reinterpret_cast<const char*>(scaled.data()), scaled.size()};
  }
  const std::string head =
      format("P{} {} {} 255\n", header.channels() == 3 ? 6 : 5, header.width, header.height);
  return DecodeWithStb({head, rows}, info, image);
}

std::optional<Refusal> DecodeDeepPnm(std::string_view bytes, const ImageInfo& info, Image* image) {
  auto samples = ReadSamples<uint16_t>(bytes, *ReadPnmHeader(bytes));
  if (!samples) return samples.error();
  image->ResizeDeep(info.height, info.width, info.channels);
  image->deep = *std::move(samples);
  return std::nullopt;
}

}  // namespace mxtrain::io
