// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/pixels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "mxtrain/io/crop_resize.h"

namespace mxtrain::io {
namespace {

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

uint8_t Rounded(double value) {
  return static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

template <typename F>
Table MakeTable(F&& f) {
  Table table;
  for (int v = 0; v < 256; ++v) table[static_cast<size_t>(v)] = f(v);
  return table;
}

void LookUp(const Table& table, Image* image) {
  for (uint8_t& value : image->pixels) value = table[value];
}

// Replaces each channel by table(histogram of the channel).
template <typename F>
void LookUpByChannel(F&& table_of, Image* image) {
  const auto channels = static_cast<size_t>(image->channels);
  for (size_t c = 0; c < channels; ++c) {
    Histogram counts{};
    for (size_t i = c; i < image->pixels.size(); i += channels) ++counts[image->pixels[i]];
    const Table table = table_of(counts);
    for (size_t i = c; i < image->pixels.size(); i += channels)
      image->pixels[i] = table[image->pixels[i]];
  }
}

uint8_t Same(int v) {
  return static_cast<uint8_t>(v);
}

double MeanLuma(const Image& image) {
  double sum = 0;
  if (image.channels == 1) {
    for (const uint8_t value : image.pixels) sum += value;
    return sum / static_cast<double>(image.pixels.size());
  }
  int64_t sums[3] = {};
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) sums[c] += image.pixels[i + c];
  }
  for (size_t c = 0; c < 3; ++c) sum += kLuma[c] * static_cast<double>(sums[c]);
  const size_t pixels = image.pixels.size() / 3;
  return sum / static_cast<double>(pixels);
}

}  // namespace

void Stretch(double factor, double offset, Image* image) {
  if (image->channels == 3) {
    const auto f = static_cast<float>(factor), o = static_cast<float>(offset);
    return MixChannels({{f, 0, 0, o}, {0, f, 0, o}, {0, 0, f, o}}, image);
  }
  LookUp(MakeTable([=](int v) { return Rounded(v * factor + offset); }), image);
}

void ScaleContrast(double factor, Image* image) {
  Stretch(factor, (1 - factor) * MeanLuma(*image), image);
}

void ScaleSaturation(double factor, Image* image) {
  if (image->channels != 3) return;
  float m[3][4] = {};
  for (int c = 0; c < 3; ++c) {
    for (int k = 0; k < 3; ++k)
      m[c][k] = static_cast<float>((1 - factor) * kLuma[k] + (c == k ? factor : 0));
  }
  MixChannels(m, image);
}

void ScaleSharpness(double factor, Image* image, Image* scratch) {
  scratch->Resize(image->height, image->width, image->channels);
  std::copy(image->pixels.begin(), image->pixels.end(), scratch->pixels.begin());
  const int step = image->channels;
  for (int y = 1; y + 1 < image->height; ++y) {
    const uint8_t* rows[3] = {scratch->row(y - 1), scratch->row(y), scratch->row(y + 1)};
    uint8_t* out = image->row(y);
    for (int i = step; i < (image->width - 1) * step; ++i) {
      int sum = 4 * rows[1][i];
      for (const uint8_t* row : rows) sum += row[i - step] + row[i] + row[i + step];
      out[i] = Rounded(factor * rows[1][i] + (1 - factor) * sum / 13);
    }
  }
}

void Posterize(int bits, Image* image) {
  const int mask = 0xFF << (8 - bits) & 0xFF;
  for (uint8_t& value : image->pixels) value = static_cast<uint8_t>(value & mask);
}

void Solarize(double threshold, Image* image) {
  LookUp(MakeTable([=](int v) { return Same(v >= threshold ? 255 - v : v); }), image);
}

void AutoContrast(Image* image) {
  const auto stretched = [](const Histogram& counts) {
    const auto present = [](int64_t count) { return count > 0; };
    const auto low = std::find_if(counts.begin(), counts.end(), present) - counts.begin();
    const auto high =
        255 - (std::find_if(counts.rbegin(), counts.rend(), present) - counts.rbegin());
    if (high <= low) return MakeTable(Same);
    return MakeTable([=](int v) {
      return Rounded(255.0 * static_cast<double>(v - low) / static_cast<double>(high - low));
    });
  };
  LookUpByChannel(stretched, image);
}

void Equalize(Image* image) {
  const auto spread = [](const Histogram& counts) {
    int64_t pixels = 0, last = 0;  // of the largest value present
    for (int64_t count : counts) {
      pixels += count;
      if (count > 0) last = count;
    }
    const int64_t step = (pixels - last) / 255;
    if (step == 0) return MakeTable(Same);
    int64_t below = step / 2;
    return MakeTable([&](int v) {
      const int64_t value = below / step;
      below += counts[static_cast<size_t>(v)];
      return static_cast<uint8_t>(std::min<int64_t>(value, 255));
    });
  };
  LookUpByChannel(spread, image);
}

}  // namespace mxtrain::io
