// PNG and BMP. stb_image does not look at checksums and reads zeros beyond the end of a BMP: both are checked here first.
#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "mxtrain/base/error.h"
#include "mxtrain/io/image_codecs.h"

namespace {

// stb_image inflates whatever a PNG holds, GiB from a few KiB. So its memory comes from here, and no piece is larger than the header of the
// picture lets it be; it meets a refusal as it meets a machine without memory.
struct Allowance {
  size_t largest = 0;
  bool exceeded = false;   // a piece was larger than that
  bool exhausted = false;  // the machine had none
};
thread_local Allowance* allowance = nullptr;  // of the decoding that this thread is in

void* AllowedRealloc(void* old, size_t bytes) {
  if (bytes > allowance->largest) {
    allowance->exceeded = true;
    return nullptr;
  }
  void* const memory = std::realloc(old, bytes);
  if (!memory && bytes > 0) allowance->exhausted = true;
  return memory;
}

}  // namespace

#define STBI_MALLOC(bytes) AllowedRealloc(nullptr, bytes)
#define STBI_REALLOC(old, bytes) AllowedRealloc(old, bytes)
#define STBI_FREE(old) std::free(old)
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#include <stb_image.h>
#pragma GCC diagnostic pop

namespace mxtrain::io {
namespace {

const stbi_uc* Data(std::string_view bytes) {
  return reinterpret_cast<const stbi_uc*>(bytes.data());
}

uint32_t BigEndian32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

uint32_t LittleEndian(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

Refusal Damaged(ImageFormat format_of_file, std::string_view reason) {
  return Refusal{format("damaged or unsupported {}: {}", format_of_file == ImageFormat::kPng ? "PNG" : "BMP", reason)};
}

// Every chunk is whole and its checksum right, up to the end chunk.
std::optional<Refusal> CheckPng(std::string_view bytes) {
  for (size_t at = 8;;) {
    if (bytes.size() - at < 12) return Damaged(ImageFormat::kPng, "the file ends early");
    const size_t length = BigEndian32(bytes, at);
    if (bytes.size() - at - 12 < length) return Damaged(ImageFormat::kPng, "the file ends early");
    const std::string_view type = bytes.substr(at + 4, 4);
    const auto sum = crc32(0, Data(bytes) + at + 4, static_cast<uInt>(length + 4));
    if (sum != BigEndian32(bytes, at + 8 + length)) return Damaged(ImageFormat::kPng, format("checksum at byte {} does not fit", at));
    if (type == "IEND") return std::nullopt;
    at += 12 + length;
  }
}

// All rows are there. Compressed forms, which have no such size, are left to stb_image, which refuses them.
std::optional<Refusal> CheckBmp(std::string_view bytes, const ImageInfo& info) {
  constexpr size_t kWithInfoHeader = 34;
  if (bytes.size() < 30) return Damaged(ImageFormat::kBmp, "the file ends early");
  const uint32_t header = LittleEndian(bytes, 14, 4);
  if (header != 12 && bytes.size() < kWithInfoHeader) return Damaged(ImageFormat::kBmp, "the file ends early");
  const uint32_t bits = LittleEndian(bytes, header == 12 ? 24 : 28, 2), start = LittleEndian(bytes, 10, 4);
  const uint64_t row_bytes = (static_cast<uint64_t>(info.width) * bits + 31) / 32 * 4;
  if (start + row_bytes * static_cast<uint64_t>(info.height) > bytes.size()) return Damaged(ImageFormat::kBmp, "the file ends early");
  return std::nullopt;
}

// The most that decoding may take in one piece: rows of 16-bit RGBA with a filter byte each, and as much again, since buffers double; or
// the file, doubled, where its pieces are joined.
size_t LargestPiece(std::string_view bytes, const ImageInfo& info) {
  constexpr size_t kSmallBuffers = 1 << 16, kPixelBytes = 8;
  const size_t rows = static_cast<size_t>(info.height) * (static_cast<size_t>(info.width) * kPixelBytes + 1);
  return std::max(2 * rows, 2 * bytes.size()) + kSmallBuffers;
}

class AllowanceInForce {
 public:
  explicit AllowanceInForce(Allowance* own) { allowance = own; }
  ~AllowanceInForce() { allowance = nullptr; }
  AllowanceInForce(const AllowanceInForce&) = delete;
  AllowanceInForce& operator=(const AllowanceInForce&) = delete;
};

void ComposeOverWhite(const stbi_uc* from, int channels, Image* image) {
  const int colours = channels - 1;
  uint8_t* to = image->pixels.data();
  for (size_t left = static_cast<size_t>(image->height) * static_cast<size_t>(image->width); left > 0; --left, from += channels) {
    const int alpha = from[colours];
    for (int c = 0; c < colours; ++c) *to++ = static_cast<uint8_t>((from[c] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
}

}  // namespace

// Headers are read here: stb_image would refuse a large one without its size.
Expected<ImageInfo, Refusal> ProbePng(std::string_view bytes) {
  if (bytes.size() < 33 || bytes.substr(12, 4) != "IHDR") return Damaged(ImageFormat::kPng, "no header");
  constexpr int kChannels[] = {1, 0, 3, 3, 2, 0, 4};  // of the colour types
  const uint32_t width = BigEndian32(bytes, 16), height = BigEndian32(bytes, 20);
  const auto type = static_cast<unsigned char>(bytes[25]);
  const int channels = type < std::size(kChannels) ? kChannels[type] : 0;
  if (width == 0 || height == 0 || width > INT_MAX || height > INT_MAX || channels == 0)
    return Damaged(ImageFormat::kPng, "impossible header");
  return ImageInfo{ImageFormat::kPng, static_cast<int>(height), static_cast<int>(width), channels};
}

Expected<ImageInfo, Refusal> ProbeBmp(std::string_view bytes) {
  if (bytes.size() < 30) return Damaged(ImageFormat::kBmp, "no header");
  const bool old = LittleEndian(bytes, 14, 4) == 12;
  const auto edge = [&](size_t at, size_t old_at) -> int64_t {
    if (old) return LittleEndian(bytes, old_at, 2);
    return static_cast<int32_t>(LittleEndian(bytes, at, 4));
  };
  const int64_t width = edge(18, 18), height = edge(22, 20);  // height below 0: rows from the top
  if (width <= 0 || height == 0 || height == INT_MIN) return Damaged(ImageFormat::kBmp, "impossible header");
  return ImageInfo{ImageFormat::kBmp, static_cast<int>(std::abs(height)), static_cast<int>(width), 3};
}

std::optional<Refusal> DecodeWithStb(std::string_view bytes, const ImageInfo& info, Image* image) {
  const auto damage = info.format == ImageFormat::kPng ? CheckPng(bytes) : CheckBmp(bytes, info);
  if (damage) return damage;
  int height = 0, width = 0, channels = 0;
  stbi__g_failure_reason = nullptr;  // else that of an earlier file stays where stb_image gives none
  Allowance own{LargestPiece(bytes, info)};
  const AllowanceInForce in_force(&own);
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(Data(bytes), static_cast<int>(bytes.size()), &width, &height, &channels, 0), stbi_image_free);
  if (own.exceeded) return Damaged(info.format, "it holds more data than its header says");
  if (!pixels && own.exhausted) Throw(ErrorKind::kMemory, "no memory to decode {}x{} pixels", info.width, info.height);
  if (!pixels) return Damaged(info.format, stbi__g_failure_reason ? stbi__g_failure_reason : "its data cannot be unpacked");
  const bool alpha = channels == 2 || channels == 4;
  image->Resize(height, width, alpha ? channels - 1 : channels);
  if (alpha) {
    ComposeOverWhite(pixels.get(), channels, image);
  } else {
    std::memcpy(image->pixels.data(), pixels.get(), image->pixels.size());
  }
  return std::nullopt;
}

}  // namespace mxtrain::io
