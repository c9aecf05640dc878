// SPDX-License-Identifier: Apache-2.0
// libjpeg reports errors through a function that must not return: it jumps back to Guarded, over
// code without destructors.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
// libjpeg's header requires stdio.h.
#include <jpeglib.h>
// The codes of its messages.
#include <jerror.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "mxtrain/base/error.h"
#include "mxtrain/io/internal/image_codecs.h"

namespace mxtrain::io {
namespace {

// A progressive image is decoded once per scan: a few bytes can cost a second each.
constexpr int kMostScans = 500;
// Reach of chroma smoothing over an edge, in pixels.
constexpr int kReach = 2;

struct ErrorState {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];  // of the first error or warning; empty: none
};

ErrorState* StateOf(j_common_ptr info) {
  return reinterpret_cast<ErrorState*>(info->err);  // the error manager is its first member
}

void Keep(j_common_ptr info) {
  ErrorState* state = StateOf(info);
  if (state->text[0] == '\0') info->err->format_message(info, state->text);
}

[[noreturn]] void OnError(j_common_ptr info) {
  Keep(info);
  std::longjmp(StateOf(info)->jump, 1);
}

// Warnings after which every pixel is still what was stored: bytes between segments or before the
// end, the revision of JFIF, an unknown colour transform in Adobe's segment, and parameters that
// only a progressive image has.
bool IsHarmless(int warning) {
  return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_JFIF_MAJOR ||
         warning == JWRN_ADOBE_XFORM || warning == JWRN_NOT_SEQUENTIAL;
}

void OnMessage(j_common_ptr info, int level) {
  if (level < 0 && !IsHarmless(info->err->msg_code)) Keep(info);
}

void OnProgress(j_common_ptr info) {
  ErrorState* state = StateOf(info);
  const int scans = reinterpret_cast<j_decompress_ptr>(info)->input_scan_number;
  if (scans <= kMostScans) return;
  std::snprintf(state->text, sizeof state->text, "more than %d scans", kMostScans);
  std::longjmp(state->jump, 1);
}

void Prepare(ErrorState* state) {
  jpeg_std_error(&state->manager);
  state->manager.error_exit = OnError;
  state->manager.emit_message = OnMessage;
  state->text[0] = '\0';
}

bool IsCmyk(J_COLOR_SPACE space) {
  return space == JCS_CMYK || space == JCS_YCCK;
}

// The smallest of 1, 2, 4 and 8 eighths that is at least `least`: the sizes with fast transforms.
int EighthsFor(double least) {
  int eighths = 1;
  while (eighths < 8 && eighths < least * 8 - 1e-9) eighths *= 2;
  return eighths;
}

// Adobe writes CMYK inverted (0 is full ink): the product of the transmission of ink and black.
void CmykToRgb(const uint8_t* cmyk, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x, cmyk += 4) {
    for (int c = 0; c < 3; ++c) *rgb++ = static_cast<uint8_t>((cmyk[c] * cmyk[3] + 127) / 255);
  }
}

// The part of the reduced image that must be decoded for `box` of the whole one.
Box ReducedBox(const Box& box, double scale, int height, int width) {
  const auto first = [scale](int at) { return static_cast<int>(std::floor(at * scale)); };
  const auto last = [scale](int at, int most) {
    return std::min(most, static_cast<int>(std::ceil(at * scale)));
  };
  const int y = first(box.y), x = std::max(0, first(box.x) - kReach);
  return {y, x, last(box.y + box.height, height) - y,
          std::min(width, last(box.x + box.width, width) + kReach) - x};
}

}  // namespace

struct JpegCodec::State {
  ErrorState errors;
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct info{};
  std::vector<uint8_t> inks;  // of a row
};

JpegCodec::JpegCodec() : state_(std::make_unique<State>()) {
  Prepare(&state_->errors);
  state_->info.err = &state_->errors.manager;
  if (!Guarded([&] { jpeg_create_decompress(&state_->info); })) {
    Throw(ErrorKind::kMemory, "cannot create a JPEG decoder: {}", state_->errors.text);
  }
  state_->progress.progress_monitor = OnProgress;
  state_->info.progress = &state_->progress;
}

JpegCodec::~JpegCodec() {
  jpeg_destroy_decompress(&state_->info);
}

// False if libjpeg failed in `work`, which must own nothing.
template <typename F>
bool JpegCodec::Guarded(F&& work) {
  if (setjmp(state_->errors.jump) != 0) return false;
  work();
  return true;
}

Refusal JpegCodec::Damage() {
  jpeg_abort_decompress(&state_->info);
  return Damaged(ImageFormat::kJpeg, state_->errors.text);
}

Expected<ImageInfo, Refusal> JpegCodec::Probe(std::string_view bytes) {
  jpeg_decompress_struct& jpeg = state_->info;
  jpeg_abort_decompress(&jpeg);
  state_->errors.text[0] = '\0';
  const bool good = Guarded([&] {
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
  });
  if (!good || state_->errors.text[0] != '\0') return Damage();
  ImageInfo info;
  info.width = static_cast<int>(jpeg.image_width);
  info.height = static_cast<int>(jpeg.image_height);
  info.channels = IsCmyk(jpeg.jpeg_color_space)            ? 4
                  : jpeg.jpeg_color_space == JCS_GRAYSCALE ? 1
                                                           : 3;
  info.orientation = ExifOrientation(bytes);
  ShowOriented(info.orientation, &info);
  return info;
}

std::optional<Refusal> JpegCodec::Decode(std::string_view bytes, const ImageInfo& info,
                                         const DecodeOptions& options, Image* image, Frame* frame) {
  jpeg_decompress_struct& jpeg = state_->info;
  const bool cmyk = info.channels == 4,
             gray = options.channels == 1 || (options.channels == 0 && info.channels == 1);
  const DecodeOptions::Part part =
      options.part ? options.part(info.height, info.width) : DecodeOptions::Part{frame->covers, 1};
  const int eighths = options.exact ? 8 : EighthsFor(part.min_scale);
  frame->scale = eighths / 8.0;
  Box box;
  bool good = Guarded([&] {
    jpeg.out_color_space = cmyk ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg.dct_method = JDCT_ISLOW;
    jpeg.scale_num = static_cast<unsigned>(eighths);
    jpeg.scale_denom = 8;
    jpeg_start_decompress(&jpeg);
    const int height = static_cast<int>(jpeg.output_height),
              width = static_cast<int>(jpeg.output_width);
    box = info.orientation == 1 ? ReducedBox(part.box, frame->scale, height, width)
                                : Box{0, 0, height, width};
    if (box.width == width) return;
    auto x = static_cast<JDIMENSION>(box.x), columns = static_cast<JDIMENSION>(box.width);
    jpeg_crop_scanline(&jpeg, &x, &columns);  // from the beginning of a block
    box.x = static_cast<int>(x);
    box.width = static_cast<int>(columns);
  });
  if (!good) return Damage();

  image->Resize(box.height, box.width, gray && !cmyk ? 1 : 3);
  const size_t stride =
      static_cast<size_t>(box.width) * static_cast<size_t>(jpeg.output_components);
  if (cmyk) state_->inks.resize(stride);
  const bool whole = static_cast<int>(jpeg.output_height) == box.y + box.height;
  const bool read_on = !whole && (options.exact || options.to_end || !bytes.ends_with("\xff\xd9"));
  good = Guarded([&] {
    if (box.y > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(box.y));
    for (int y = 0; y < box.height;) {
      JSAMPROW row = cmyk ? state_->inks.data() : image->row(y);
      if (jpeg_read_scanlines(&jpeg, &row, 1) == 0) continue;
      if (cmyk) CmykToRgb(row, box.width, image->row(y));
      ++y;
    }
    if (read_on && jpeg.output_scanline + 1 < jpeg.output_height) {
      jpeg_skip_scanlines(&jpeg, jpeg.output_height - 1 - jpeg.output_scanline);
    }
  });
  std::vector<uint8_t> spare(good && read_on ? stride : 0);
  good = good && Guarded([&] {
           JSAMPROW row = spare.data();
           if (read_on) jpeg_read_scanlines(&jpeg, &row, 1);
           whole || read_on ? static_cast<void>(jpeg_finish_decompress(&jpeg))
                            : jpeg_abort_decompress(&jpeg);
         });
  if (!good || state_->errors.text[0] != '\0') return Damage();
  if (info.orientation == 1) frame->covers = {box.y, box.x, box.height, box.width};
  return std::nullopt;
}

std::string EncodeJpeg(const Image& image, int quality) {
  if (image.pixels.empty())
    Throw(ErrorKind::kData, "cannot write an empty image of {}x{} pixels as JPEG", image.width,
          image.height);
  ErrorState errors;
  Prepare(&errors);
  jpeg_compress_struct jpeg{};
  jpeg.err = &errors.manager;
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  const bool good = [&] {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &buffer, &size);
    jpeg.image_width = static_cast<JDIMENSION>(image.width);
    jpeg.image_height = static_cast<JDIMENSION>(image.height);
    jpeg.input_components = image.channels;
    jpeg.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < image.height; ++y) {
      JSAMPROW row = const_cast<uint8_t*>(image.row(y));
      jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    return true;
  }();
  jpeg_destroy_compress(&jpeg);
  const std::unique_ptr<unsigned char, void (*)(void*)> owner(buffer, std::free);
  if (!good) Throw(ErrorKind::kData, "cannot write an image as JPEG: {}", errors.text);
  return std::string(reinterpret_cast<const char*>(buffer), size);
}

}  // namespace mxtrain::io
