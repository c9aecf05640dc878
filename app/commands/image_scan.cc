// SPDX-License-Identifier: Apache-2.0
#include "app/commands/image_scan.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <exception>
#include <string>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/base/thread.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/io/image.h"

namespace mxtrain::commands {
namespace {

constexpr int kRows = 16, kColumns = 17;
// Smaller images of similar objects look alike: 252 of 10,000 MNIST digits would be reported as
// copies.
constexpr int kLeastEdge = 48;
using Thumbnail = std::array<double, kRows * kColumns>;  // gray, 0 .. 255

// Pixels that overlap the interval [begin, end), and the overlap of each.
std::vector<std::pair<int, double>> Overlaps(double begin, double end) {
  std::vector<std::pair<int, double>> parts;
  for (int pixel = static_cast<int>(begin); pixel < end; ++pixel) {
    const double part = std::min(end, pixel + 1.0) - std::max(begin, static_cast<double>(pixel));
    if (part > 1e-9) parts.emplace_back(pixel, part);
  }
  return parts;
}

// Means over boxes that cover an image of any size.
Thumbnail Shrink(const io::Image& gray) {
  const double height = double(gray.height) / kRows, width = double(gray.width) / kColumns;
  Thumbnail thumbnail;
  for (int y = 0; y < kRows; ++y) {
    const auto rows = Overlaps(y * height, std::min<double>(gray.height, (y + 1) * height));
    for (int x = 0; x < kColumns; ++x) {
      double sum = 0;
      for (const auto& [u, share] :
           Overlaps(x * width, std::min<double>(gray.width, (x + 1) * width))) {
        for (const auto& [v, part] : rows) sum += gray.row(v)[u] * share * part;
      }
      thumbnail[static_cast<size_t>(y) * kColumns + static_cast<size_t>(x)] =
          sum / (height * width);
    }
  }
  return thumbnail;
}

ImageHash HashOf(const Thumbnail& thumbnail) {
  constexpr double kMargin = 6;  // gray levels: in flat regions noise would decide
  ImageHash hash{};
  for (size_t bit = 0; bit < 256; ++bit) {
    const double* pixel = &thumbnail[bit / 16 * kColumns + bit % 16];
    if (pixel[0] + kMargin < pixel[1]) hash[bit / 64] |= uint64_t{1} << bit % 64;
  }
  return hash;
}

// Correlation of two thumbnails, -1 .. 1; 0 if one has almost no contrast.
double Correlation(const Thumbnail& a, const Thumbnail& b) {
  constexpr double kLeastDeviation = 4;
  const double n = static_cast<double>(a.size());
  double sum_a = 0, sum_b = 0, aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum_a += a[i], sum_b += b[i];
    aa += a[i] * a[i], bb += b[i] * b[i], ab += a[i] * b[i];
  }
  const double variance_a = aa / n - sum_a / n * (sum_a / n),
               variance_b = bb / n - sum_b / n * (sum_b / n);
  if (std::min(variance_a, variance_b) < kLeastDeviation * kLeastDeviation) return 0;
  return (ab / n - sum_a / n * (sum_b / n)) / std::sqrt(variance_a * variance_b);
}

bool IsImageField(const io::FieldSpec& field) {
  return field.kind == io::FieldKind::kImage;
}

// Scans records one by one and reuses memory.
class Looker {
 public:
  explicit Looker(const io::Source& source) : source_(source) {
    for (size_t i = 0; i < source.data_fields().size(); ++i) {
      if (IsImageField(source.data_fields()[i])) images_.push_back(i);
    }
  }

  ImageFacts Look(int64_t index) {
    ImageFacts facts;
    if (!Read(index)) return facts;
    std::string sums;
    for (const size_t i : images_) sums += SumOf(sample_.data[i]);
    facts.checksum = Checksum(sums);
    facts.readable = ReadHeader(&facts);
    if (!facts.readable || images_.size() > 1 || std::min(facts.height, facts.width) < kLeastEdge)
      return facts;
    if (const auto thumbnail = ThumbnailOfSample()) facts.hash = HashOf(*thumbnail);
    return facts;
  }

  std::optional<Thumbnail> ThumbnailOf(int64_t index) {
    return Read(index) ? ThumbnailOfSample() : std::nullopt;
  }

 private:
  bool Read(int64_t index) {
    try {
      source_.Read(index, &sample_);
      return true;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kData && e.kind() != ErrorKind::kFileSystem) throw;
      return false;
    }
  }

  static std::string SumOf(const io::FieldValue& value) {
    const std::string_view pixels(reinterpret_cast<const char*>(value.pixels.data()),
                                  value.pixels.size());
    return format("{:016x}{} ", Checksum(pixels.empty() ? std::string_view(value.encoded) : pixels),
                  value.encoded.size() + pixels.size());
  }

  const io::FieldValue& first() const { return sample_.data[images_[0]]; }

  bool ReadHeader(ImageFacts* facts) const {
    const TShape& shape = source_.data_fields()[images_[0]].shape;
    if (!first().pixels.empty()) {
      facts->channels = static_cast<int>(shape[0]), facts->height = static_cast<int>(shape[1]),
      facts->width = static_cast<int>(shape[2]);
      return true;
    }
    const auto info = io::ProbeImage(first().encoded);
    if (!info) return false;
    facts->height = info->height, facts->width = info->width;
    facts->channels = info->channels, facts->orientation = info->orientation;
    facts->bits = info->bits;
    facts->cmyk = info->format == io::ImageFormat::kJpeg && info->channels == 4;
    return true;
  }

  std::optional<Thumbnail> ThumbnailOfSample() {
    if (!first().pixels.empty()) {
      const TShape& shape = source_.data_fields()[images_[0]].shape;
      image_.Resize(static_cast<int>(shape[1]), static_cast<int>(shape[2]),
                    static_cast<int>(shape[0]));
      std::copy(first().pixels.begin(), first().pixels.end(), image_.pixels.begin());
      io::ConvertChannels(1, &image_);
      return Shrink(image_);
    }
    io::DecodeOptions options;
    options.channels = 1;
    options.exact = false;
    options.part = [](int height, int width) {
      // Twice the thumbnail's size is sufficient.
      return io::DecodeOptions::Part{
          {0, 0, height, width},
          std::min(1.0, std::max(2.0 * kRows / height, 2.0 * kColumns / width))};
    };
    io::Frame frame;
    if (decoder_.Decode(first().encoded, options, &image_, &frame)) return std::nullopt;
    return Shrink(image_);
  }

  const io::Source& source_;
  std::vector<size_t> images_;  // fields
  io::Sample sample_;
  io::ImageDecoder decoder_;
  io::Image image_;
};

}  // namespace

int Distance(const ImageHash& a, const ImageHash& b) {
  int bits = 0;
  for (size_t i = 0; i < a.size(); ++i) bits += std::popcount(a[i] ^ b[i]);
  return bits;
}

std::vector<ImageFacts> ScanImages(const io::Source& source, const std::function<bool()>& stop,
                                   const std::function<void()>& on_image) {
  const std::vector<io::FieldSpec>& fields = source.data_fields();
  if (std::none_of(fields.begin(), fields.end(), IsImageField)) return {};
  std::vector<ImageFacts> facts(static_cast<size_t>(source.size()));
  std::atomic<int64_t> next{0};
  Mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      Looker looker(source);
      for (int64_t i = next++; i < source.size() && !stop(); i = next++) {
        facts[static_cast<size_t>(i)] = looker.Look(i);
        on_image();
      }
    } catch (...) {
      next = source.size();
      MutexLock lock(mutex);
      error = std::current_exception();
    }
  };
  ThreadGroup threads([&] { next = source.size(); });
  for (int i = 0; i < UsableCpuCount(); ++i) threads.Start(work);
  threads.Join();
  if (error) std::rethrow_exception(error);
  return facts;
}

bool LookAlike(const io::Source& a, int64_t index_a, const io::Source& b, int64_t index_b) {
  constexpr double kLeastCorrelation = 0.98;
  const auto first = Looker(a).ThumbnailOf(index_a), second = Looker(b).ThumbnailOf(index_b);
  return first && second && Correlation(*first, *second) >= kLeastCorrelation;
}

}  // namespace mxtrain::commands
