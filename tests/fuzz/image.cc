// SPDX-License-Identifier: Apache-2.0
// Images of every format, unchanged, and PNG with corrected checksums, so mutations get past them.
#include <zlib.h>

#include <cstring>
#include <optional>

#include "mxtrain/io/image.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {
namespace {

constexpr std::string_view kPngBegin("\x89PNG\r\n\x1a\n", 8);
constexpr size_t kMostPacked = size_t{1} << 16;
constexpr size_t kMostUnpacked = size_t{1} << 22;

void PutBigEndian(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

uint32_t BigEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
  return value;
}

void PutChunk(std::string_view type, std::string_view data, std::string* png) {
  PutBigEndian(static_cast<uint32_t>(data.size()), png);
  const size_t begin = png->size();
  png->append(type).append(data);
  PutBigEndian(static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(png->data() + begin),
                                           static_cast<uInt>(png->size() - begin))),
               png);
}

// Corrects the checksum of a zlib stream; unchanged if it does not unpack.
std::string WithAdler(std::string packed) {
  if (packed.size() < 6 || packed.size() > kMostPacked) return packed;
  std::string pixels(kMostUnpacked, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) return packed;
  stream.next_in = reinterpret_cast<Bytef*>(packed.data() + 2);
  stream.avail_in = static_cast<uInt>(packed.size() - 2);
  stream.next_out = reinterpret_cast<Bytef*>(pixels.data());
  stream.avail_out = static_cast<uInt>(pixels.size());
  const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END;
  const size_t used = 2 + stream.total_in, made = stream.total_out;
  inflateEnd(&stream);
  if (!whole) return packed;
  packed.resize(used);
  PutBigEndian(static_cast<uint32_t>(adler32(1, reinterpret_cast<const Bytef*>(pixels.data()),
                                             static_cast<uInt>(made))),
               &packed);
  return packed;
}

// The chunks with correct lengths and checksums, adjacent IDATs merged.
std::optional<std::string> RepairedPng(std::string_view bytes) {
  if (!bytes.starts_with(kPngBegin)) return std::nullopt;
  std::string png(kPngBegin), packed;
  bytes.remove_prefix(kPngBegin.size());
  const auto put_packed = [&] {
    if (!packed.empty()) PutChunk("IDAT", WithAdler(std::exchange(packed, "")), &png);
  };
  while (bytes.size() >= 8) {
    const std::string_view type = bytes.substr(4, 4);
    const std::string_view data = bytes.substr(8, BigEndian(bytes));
    if (type == "IDAT") {
      packed += data;
    } else {
      put_packed();
      PutChunk(type, data, &png);
    }
    bytes.remove_prefix(std::min(bytes.size(), 12 + data.size()));
  }
  put_packed();
  return png;
}

void Decode(std::string_view bytes) {
  static io::ImageDecoder decoder;
  io::DecodeOptions options;
  options.max_pixels = 1 << 20;
  io::Image image;
  MayRefuse([&] { io::ProbeImage(bytes); });
  MayRefuse([&] { decoder.Decode(bytes, options, &image); });
  options.exact = false;
  options.to_end = bytes.size() % 2 == 0;
  options.channels = 3;
  options.part = [](int height, int width) {
    return io::DecodeOptions::Part{
        {height / 4, width / 3, std::max(1, height / 2), std::max(1, width / 2)}, 0.25};
  };
  io::Frame frame;
  MayRefuse([&] { decoder.Decode(bytes, options, &image, &frame); });
}

}  // namespace

std::vector<std::string> LargeInputs() {
  return {};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  const std::string_view bytes = TextOf(data, size);
  Decode(bytes);
  if (const auto repaired = RepairedPng(bytes)) Decode(*repaired);
  return 0;
}
