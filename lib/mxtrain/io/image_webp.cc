// SPDX-License-Identifier: Apache-2.0
// WebP, lossy and lossless, by libwebp; of an animation the first frame, on its canvas. The decoder
// writes into memory of ours, allocated once the size of the header is accepted.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/io/internal/image_codecs.h"

namespace mxtrain::io {
namespace {

Refusal FailureOf(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      Throw(ErrorKind::kMemory, "no memory to decode a WebP");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return Damaged(ImageFormat::kWebp, "the file ends early");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return Damaged(ImageFormat::kWebp, "an unsupported feature");
    default:
      return Damaged(ImageFormat::kWebp, "the compressed data are damaged");
  }
}

const uint8_t* DataOf(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

// The parts of the container, which point into the file; null if it is damaged.
using Demuxer = std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)>;

Demuxer OpenDemuxer(std::string_view bytes) {
  const WebPData data{DataOf(bytes), bytes.size()};
  return Demuxer(WebPDemux(&data), WebPDemuxDelete);
}

int OrientationOf(std::string_view bytes) {
  const Demuxer demuxer = OpenDemuxer(bytes);
  WebPChunkIterator chunk;
  if (!demuxer || WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk) == 0) return 1;
  std::string_view block(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size);
  constexpr std::string_view kBegin("Exif\0\0", 6);  // of some writers
  if (block.starts_with(kBegin)) block.remove_prefix(kBegin.size());
  const int orientation = OrientationOfExif(block);
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

// Decodes a still image to RGB or RGBA, as `channels` says, into rows of `stride` bytes.
std::optional<Refusal> DecodeStill(std::string_view bytes, int channels, uint8_t* to, size_t stride,
                                   size_t size) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return Damaged(ImageFormat::kWebp, "another version of libwebp");
  config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {to, static_cast<int>(stride), size};
  const VP8StatusCode status = WebPDecode(DataOf(bytes), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) return FailureOf(status);
  return std::nullopt;
}

// *image: RGBA, transparent outside the frame.
std::optional<Refusal> DecodeFirstFrame(std::string_view bytes, Image* image) {
  const Demuxer demuxer = OpenDemuxer(bytes);
  WebPIterator frame;
  if (!demuxer || WebPDemuxGetFrame(demuxer.get(), 1, &frame) == 0)
    return Damaged(ImageFormat::kWebp, "the file ends early");
  const std::unique_ptr<WebPIterator, void (*)(WebPIterator*)> owner(&frame,
                                                                     WebPDemuxReleaseIterator);
  if (frame.complete == 0) return Damaged(ImageFormat::kWebp, "the file ends early");
  const bool fits = frame.x_offset >= 0 && frame.y_offset >= 0 && frame.width > 0 &&
                    frame.height > 0 && frame.x_offset <= image->width - frame.width &&
                    frame.y_offset <= image->height - frame.height;
  if (!fits) return Damaged(ImageFormat::kWebp, "a frame outside the canvas");
  std::fill(image->pixels.begin(), image->pixels.end(), uint8_t{0});
  uint8_t* const to = image->row(frame.y_offset) + 4 * frame.x_offset;
  const auto stride = static_cast<size_t>(4 * image->width);
  const std::string_view still(reinterpret_cast<const char*>(frame.fragment.bytes),
                               frame.fragment.size);
  return DecodeStill(still, 4, to, stride,
                     static_cast<size_t>(image->pixels.data() + image->pixels.size() - to));
}

}  // namespace

Expected<ImageInfo, Refusal> ProbeWebp(std::string_view bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(DataOf(bytes), bytes.size(), &features);
  if (status != VP8_STATUS_OK) return FailureOf(status);
  const bool alpha = features.has_alpha != 0 || features.has_animation != 0;
  ImageInfo info{ImageFormat::kWebp, features.height, features.width, alpha ? 4 : 3};
  ShowOriented(OrientationOf(bytes), &info);
  return info;
}

std::optional<Refusal> DecodeWebp(std::string_view bytes, const ImageInfo& info, Image* image) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(DataOf(bytes), bytes.size(), &features);
  if (status != VP8_STATUS_OK) return FailureOf(status);
  image->Resize(features.height, features.width, info.channels);
  auto damage =
      features.has_animation != 0
          ? DecodeFirstFrame(bytes, image)
          : DecodeStill(bytes, info.channels, image->pixels.data(),
                        static_cast<size_t>(features.width * info.channels), image->pixels.size());
  if (damage) return damage;
  ComposeOverWhite(image);
  return std::nullopt;
}

}  // namespace mxtrain::io
