// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/pixel_statistics.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/io/image.h"

namespace mxtrain::io {
namespace {

bool IsAuto(const TransformSpec& spec) {
  if (spec.name != "normalize") return false;
  return std::any_of(spec.kwargs.begin(), spec.kwargs.end(), [](const auto& item) {
    return (item.first.empty() || item.first == "from") && item.second == "auto";
  });
}

// Exact counts, independent of order: of values of 8 bits, or of 16, of which 257 is a step of 8.
class ValueCounts {
 public:
  ValueCounts(int channels, int bits)
      : white_((size_t{1} << bits) - 1),
        counts_(static_cast<size_t>(channels), std::vector<int64_t>(white_ + 1)) {}
  void Add(const Image& image) {
    image.is_deep() ? Add<uint16_t>(image.deep, 1) : Add<uint8_t>(image.pixels, white_ / 255);
  }
  PixelStatistics Statistics(int64_t images) const {
    PixelStatistics result{{}, {}, images};
    for (const std::vector<int64_t>& counts : counts_) {
      double n = 0, sum = 0, squares = 0;
      for (size_t v = 0; v < counts.size(); ++v) {
        const double value = static_cast<double>(v) / static_cast<double>(white_),
                     count = static_cast<double>(counts[v]);
        n += count, sum += count * value, squares += count * value * value;
      }
      result.mean.push_back(sum / n);
      result.std.push_back(std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n))));
    }
    return result;
  }

 private:
  template <typename T>
  void Add(const std::vector<T>& samples, size_t step) {
    for (size_t i = 0; i < samples.size(); i += counts_.size()) {
      for (size_t c = 0; c < counts_.size(); ++c) ++counts_[c][samples[i + c] * step];
    }
  }

  size_t white_;
  std::vector<std::vector<int64_t>> counts_;  // [channels][white + 1]
};

}  // namespace

bool WantsStatistics(const std::vector<TransformSpec>& specs) {
  return !specs.empty() && IsAuto(specs.back());
}

PixelStatistics MeasurePixels(const Source& source, int channels, int bits, int64_t most) {
  const std::vector<FieldSpec>& fields = source.data_fields();
  if (std::none_of(fields.begin(), fields.end(),
                   [](const FieldSpec& f) { return f.kind == FieldKind::kImage; })) {
    Throw(ErrorKind::kConfig, "normalize: auto measures images, but the data are numbers");
  }
  ValueCounts counts(channels, bits);
  ImageDecoder decoder;
  DecodeOptions options;
  options.channels = channels;
  options.bits = bits;
  Image image;
  Sample sample;
  std::string last;
  int64_t images = 0;
  const int64_t count = std::min(most, source.size());
  for (int64_t i = 0; i < count; ++i) {
    try {
      source.Read(i * source.size() / count, &sample);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
      last = error.what();
      continue;
    }
    for (size_t k = 0; k < fields.size(); ++k) {
      if (fields[k].kind != FieldKind::kImage) continue;
      const FieldValue& value = sample.data[k];
      if (!value.pixels.empty()) {
        image.Resize(static_cast<int>(fields[k].shape[1]), static_cast<int>(fields[k].shape[2]),
                     static_cast<int>(fields[k].shape[0]));
        std::copy(value.pixels.begin(), value.pixels.end(), image.pixels.begin());
        ConvertChannels(channels, &image);
      } else if (auto refusal = decoder.Decode(value.encoded, options, &image)) {
        last = refusal->reason;
        continue;
      }
      counts.Add(image);
      ++images;
    }
  }
  if (images == 0)
    Throw(ErrorKind::kData, "normalize: auto: none of {} images can be read; the last: {}", count,
          last);
  return counts.Statistics(images);
}

std::vector<TransformSpec> WithStatistics(std::vector<TransformSpec> specs,
                                          const PixelStatistics& statistics) {
  if (!WantsStatistics(specs)) return specs;
  std::vector<double> std = statistics.std;
  std::replace_if(
      std.begin(), std.end(), [](double s) { return !(s > 0); }, 1.0);
  specs.back().kwargs = {{"mean", params::Print(statistics.mean)}, {"std", params::Print(std)}};
  return specs;
}

}  // namespace mxtrain::io
