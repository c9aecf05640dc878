// SPDX-License-Identifier: Apache-2.0
// For each row of the result: the weighted sum of the box's rows that it needs, then the taps of
// each pixel along that sum. Compiled once per instruction set; the best one available is chosen at
// run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/io/crop_resize.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace mxtrain::io {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename D>
hn::Vec<D> FromBytes(D d, const uint8_t* from) {
  const hn::Rebind<uint8_t, D> d8;
  const hn::Rebind<int32_t, D> d32;
  return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, from)));
}

template <typename D>
void ToBytes(D, hn::Vec<D> value, uint8_t* to) {
  const hn::Rebind<uint8_t, D> d8;
  hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(value)), d8, to);
}

// sums[i] = sum over taps of weights[t] * rows[t][i], for i < n; may access one vector beyond the
// end of rows and sums.
void SumRows(const uint8_t* const* rows, const float* weights, int taps, size_t n, float* sums) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    auto sum = hn::Mul(FromBytes(d, rows[0] + i), hn::Set(d, weights[0]));
    for (int t = 1; t < taps; ++t)
      sum = hn::MulAdd(FromBytes(d, rows[t] + i), hn::Set(d, weights[t]), sum);
    hn::StoreU(sum, d, sums + i);
  }
}

// One pixel of three channels at a time, one vector of numbers; kTaps 0: `taps` taps.
template <int kTaps, typename D>
void SumPixels(D d, const float* sums, const int* first, const float* weights, int taps, int width,
               float* line) {
  if (kTaps != 0) taps = kTaps;
  for (int x = 0; x < width; ++x, weights += taps, line += 3) {
    for (size_t c = 0; c < 3; c += hn::Lanes(d)) {
      const float* from = sums + first[x] + c;
      auto sum = hn::Mul(hn::LoadU(d, from), hn::Set(d, weights[0]));
      for (int t = 1; t < taps; ++t)
        sum = hn::MulAdd(hn::LoadU(d, from + 3 * t), hn::Set(d, weights[t]), sum);
      hn::StoreU(sum, d, line + c);
    }
  }
}

// line[x] = sum over taps of weights[x * taps + t] * pixel t of those starting at sums[first[x]];
// three channels. May access one number beyond the end of both.
void SumColumnsRgb(const float* sums, const int* first, const float* weights, int taps, int width,
                   float* line) {
  const hn::CappedTag<float, 4> d;
  if (taps == 2) return SumPixels<2>(d, sums, first, weights, taps, width, line);
  SumPixels<0>(d, sums, first, weights, taps, width, line);
}

void LineToBytes(const float* line, size_t n, uint8_t* to) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) ToBytes(d, hn::LoadU(d, line + i), to + i);
  if (i == n) return;
  HWY_ALIGN uint8_t rest[HWY_MAX_BYTES];
  ToBytes(d, hn::LoadU(d, line + i), rest);
  for (size_t k = 0; i < n; ++i, ++k) to[i] = rest[k];
}

template <typename D>
hn::Vec<D> Level(D d, hn::Vec<D> pixel, float scale, float offset, bool by_255) {
  if (by_255) return hn::Div(pixel, hn::Set(d, 255.0f));
  return hn::MulAdd(pixel, hn::Set(d, scale), hn::Set(d, offset));
}

template <typename D>
hn::Vec<D> Rounded(D d, hn::Vec<D> value) {
  return hn::Clamp(hn::Round(value), hn::Zero(d), hn::Set(d, 255.0f));
}

// Rounds interleaved channels to a row of each plane; may read one vector per channel beyond the
// line.
void LineToPlanes(const float* line, int channels, size_t n, const float* scale,
                  const float* offset, bool by_255, float* planes, size_t plane) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
  for (size_t i = 0; i < n; i += lanes) {
    hn::Vec<decltype(d)> v[3];
    if (channels == 3) {
      hn::LoadInterleaved3(d, line + 3 * i, v[0], v[1], v[2]);
    } else {
      v[0] = hn::LoadU(d, line + i);
    }
    for (int c = 0; c < channels; ++c) {
      const auto level = Level(d, Rounded(d, v[c]), scale[c], offset[c], by_255);
      float* to = planes + static_cast<size_t>(c) * plane + i;
      if (i + lanes <= n) {
        hn::StoreU(level, d, to);
      } else {
        hn::Store(level, d, rest);
        for (size_t k = 0; i + k < n; ++k) to[k] = rest[k];
      }
    }
  }
}

// Converts interleaved pixels to numbers, in whole vectors; returns how many.
size_t BytesToPlanes(const uint8_t* pixels, int channels, size_t n, const float* scale,
                     const float* offset, bool by_255, float* planes, size_t plane) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d8)> v[3];
    if (channels == 3) {
      hn::LoadInterleaved3(d8, pixels + 3 * i, v[0], v[1], v[2]);
    } else {
      v[0] = hn::LoadU(d8, pixels + i);
    }
    for (int c = 0; c < channels; ++c) {
      const auto value = hn::ConvertTo(d, hn::PromoteTo(d32, v[c]));
      hn::StoreU(Level(d, value, scale[c], offset[c], by_255), d,
                 planes + static_cast<size_t>(c) * plane + i);
    }
  }
  return i;
}

// Processes pixels in whole vectors; returns how many.
size_t MixRgb(const float (&m)[3][4], size_t n, uint8_t* pixels) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d8)> v[3];
    hn::LoadInterleaved3(d8, pixels + 3 * i, v[0], v[1], v[2]);
    hn::Vec<decltype(d)> f[3];
    for (int c = 0; c < 3; ++c) f[c] = hn::ConvertTo(d, hn::PromoteTo(d32, v[c]));
    for (int c = 0; c < 3; ++c) {
      auto sum = hn::MulAdd(f[0], hn::Set(d, m[c][0]), hn::Set(d, m[c][3]));
      sum = hn::MulAdd(f[1], hn::Set(d, m[c][1]), sum);
      sum = hn::MulAdd(f[2], hn::Set(d, m[c][2]), sum);
      v[c] = hn::DemoteTo(d8, hn::NearestInt(sum));
    }
    hn::StoreInterleaved3(v[0], v[1], v[2], d8, pixels + 3 * i);
  }
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::io
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/io/crop_resize.h"
#include "mxtrain/io/internal/resample.h"

namespace mxtrain::io {
HWY_EXPORT(SumRows);
HWY_EXPORT(SumColumnsRgb);
HWY_EXPORT(LineToBytes);
HWY_EXPORT(LineToPlanes);
HWY_EXPORT(BytesToPlanes);
HWY_EXPORT(MixRgb);

namespace {

// For all instruction sets: HWY_MAX_BYTES is for one.
constexpr size_t kMostLanes = 64;          // a vector of bytes
constexpr size_t kSpare = 4 * kMostLanes;  // that vectors may access beyond an end

// The input pixels of each result pixel in a line, with their weights.
struct Axis {
  int taps = 1;
  std::vector<int> first;       // [n], counted from the first decoded pixel
  std::vector<float> weights;   // [n, taps]
  std::vector<double> centers;  // [n]: of the result's pixels, in the box
  std::vector<double> sample;   // weights of the current one
};

// One axis of a crop-resize over decoded pixels.
struct Side {
  int box_begin, box_size, grid, window_begin, window_size;
  bool reversed;
  double scale;     // of the decoded image
  int begin, size;  // decoded
};

double CubicWeight(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

int Floor(double x) {
  const int whole = static_cast<int>(x);
  return whole - (x < whole);
}

constexpr int kMostWeights = 4;  // except area

// The weights of the pixels from *begin on for a sample at `at` (0 is the left edge of pixel 0);
// `step`: distance between samples. Returns their number.
int SampleWeights(int how, double at, double step, int* begin, double* weights) {
  if (how == kNearest) {
    *begin = Floor(at);
    weights[0] = 1;
    return 1;
  }
  if (how == kArea && step > 1) {
    const double low = at - step / 2, high = at + step / 2;
    *begin = Floor(low);
    int count = 0;
    for (int i = *begin; i < high - 1e-9; ++i)
      weights[count++] = (std::min(high, i + 1.0) - std::max(low, double(i))) / step;
    return count;
  }
  if (how == kCubic) {
    *begin = Floor(at - 0.5) - 1;
    for (int i = 0; i < 4; ++i) weights[i] = CubicWeight(at - 0.5 - (*begin + i));
    return 4;
  }
  *begin = Floor(at - 0.5);
  weights[1] = at - 0.5 - *begin;
  weights[0] = 1 - weights[1];
  return 2;
}

// `begin`: where the box begins. For nearest, steps are added up as in Pillow: where a center falls
// on the edge of two pixels, the rounding of that sum decides between them.
void FindCenters(const Side& side, int how, double begin, double step,
                 std::vector<double>* centers) {
  double sum = begin + 0.5 * step;
  for (int i = 0; i < side.window_begin; ++i) sum += step;
  centers->resize(static_cast<size_t>(side.window_size));
  for (int i = 0; i < side.window_size; ++i, sum += step) {
    const double product = begin + (side.window_begin + i + 0.5) * step;
    const int to = side.reversed ? side.window_size - 1 - i : i;
    (*centers)[static_cast<size_t>(to)] = how == kNearest ? sum : product;
  }
}

void MakeAxis(const Side& side, int how, Axis* axis) {
  const double begin = side.box_begin * side.scale, size = side.box_size * side.scale,
               step = size / side.grid;
  const int origin = Floor(begin);  // centers are counted from it, so a box alone has the same
  // The edges of the box in decoded pixels.
  const int low = std::max(side.begin, static_cast<int>(std::floor(begin + 1e-6)));
  const int high =
      std::min(side.begin + side.size, static_cast<int>(std::ceil(begin + size - 1e-6)));
  const int widest = how == kNearest            ? 1
                     : how == kArea && step > 1 ? static_cast<int>(std::ceil(step)) + 1
                     : how == kCubic            ? 4
                                                : 2;
  const int taps = std::min(widest, high - low);
  axis->taps = taps;
  axis->first.resize(static_cast<size_t>(side.window_size));
  axis->weights.assign(static_cast<size_t>(side.window_size) * static_cast<size_t>(taps), 0.0f);
  axis->sample.resize(static_cast<size_t>(std::max(kMostWeights, widest + 1)));
  FindCenters(side, how, begin - origin, step, &axis->centers);
  float* to = axis->weights.data();
  for (size_t i = 0; i < axis->centers.size(); ++i, to += taps) {
    int at = 0;
    const int count = SampleWeights(how, axis->centers[i], step, &at, axis->sample.data());
    at += origin;
    const int first = std::clamp(at, low, high - taps);
    axis->first[i] = first - side.begin;
    for (int t = 0; t < count; ++t) {
      const int tap = std::clamp(at + t, low, high - 1) - first;
      to[std::clamp(tap, 0, taps - 1)] += static_cast<float>(axis->sample[static_cast<size_t>(t)]);
    }
  }
}

// Reusable memory of a thread.
struct Workspace {
  Axis rows, columns;
  std::vector<const uint8_t*> taps;
  std::vector<float> sums, line;
  std::vector<uint8_t> last;  // copies of lines at the end of the image, with room behind them
};

Workspace& ThreadWorkspace() {
  static thread_local Workspace workspace;
  return workspace;
}

int MethodOf(const CropResize& crop) {
  if (crop.how.interpolation != kAuto) return crop.how.interpolation;
  return 2 * crop.grid_height <= crop.box.height || 2 * crop.grid_width <= crop.box.width
             ? kArea
             : kBilinear;
}

void SumColumns(const Axis& axis, int channels, int width, const float* sums, float* line) {
  if (channels == 3)
    return HWY_DYNAMIC_DISPATCH(SumColumnsRgb)(sums, axis.first.data(), axis.weights.data(),
                                               axis.taps, width, line);
  const float* weights = axis.weights.data();
  for (int x = 0; x < width; ++x, weights += axis.taps) {
    const float* from = sums + axis.first[static_cast<size_t>(x)];
    line[x] = from[0] * weights[0];
    for (int t = 1; t < axis.taps; ++t) line[x] = std::fma(from[t], weights[t], line[x]);
  }
}

// Calls `emit(y, line)` for each row of the result, a line of numbers not yet rounded.
template <typename Emit>
void ForEachLine(const CropResize& crop, const Image& from, const Frame& frame, Emit&& emit) {
  Workspace& work = ThreadWorkspace();
  const int how = MethodOf(crop);
  const Box &box = crop.box, &window = crop.window, &covers = frame.covers;
  MakeAxis({box.y, box.height, crop.grid_height, window.y, window.height, crop.upside_down,
            frame.scale, covers.y, covers.height},
           how, &work.rows);
  MakeAxis({box.x, box.width, crop.grid_width, window.x, window.width, crop.mirrored, frame.scale,
            covers.x, covers.width},
           how, &work.columns);
  const auto channels = static_cast<size_t>(from.channels);
  const int low = std::min(work.columns.first.front(), work.columns.first.back());
  const int high = std::max(work.columns.first.front(), work.columns.first.back());
  const size_t begin = channels * static_cast<size_t>(low),
               n = channels * static_cast<size_t>(high + work.columns.taps - low);
  for (int& first : work.columns.first) first = (first - low) * from.channels;  // of numbers
  work.sums.resize(n + kSpare);
  work.line.resize(channels * static_cast<size_t>(window.width) + 3 * kSpare);
  const auto taps = static_cast<size_t>(work.rows.taps);
  work.taps.resize(taps);
  work.last.resize(taps * (n + kSpare));
  const uint8_t* const end = from.pixels.data() + from.pixels.size();
  for (int y = 0; y < window.height; ++y) {
    for (size_t t = 0; t < taps; ++t) {
      const uint8_t* row =
          from.row(work.rows.first[static_cast<size_t>(y)] + static_cast<int>(t)) + begin;
      if (static_cast<size_t>(end - row) < n + kSpare) {
        row = static_cast<const uint8_t*>(std::memcpy(work.last.data() + t * (n + kSpare), row, n));
      }
      work.taps[t] = row;
    }
    HWY_DYNAMIC_DISPATCH(SumRows)
    (work.taps.data(), work.rows.weights.data() + static_cast<size_t>(y) * taps, work.rows.taps, n,
     work.sums.data());
    SumColumns(work.columns, from.channels, window.width, work.sums.data(), work.line.data());
    emit(y, work.line.data());
  }
}

// If the result's pixels are the image's, in the same order.
const uint8_t* PlainRow(const CropResize& crop, const Image& from, const Frame& frame, int y) {
  const int row = crop.upside_down ? crop.window.height - 1 - y : y;
  return from.row(crop.box.y + crop.window.y + row - frame.covers.y) +
         (crop.box.x + crop.window.x - frame.covers.x) * from.channels;
}

void CopyMirrored(const uint8_t* from, int channels, int width, uint8_t* to) {
  if (channels == 1) {
    std::reverse_copy(from, from + width, to);
    return;
  }
  for (int x = 0; x < width; ++x) std::memcpy(to + 3 * x, from + 3 * (width - 1 - x), 3);
}

// Copies whole pixels, without resizing.
bool IsPlain(const CropResize& crop, const Frame& frame) {
  return !crop.resized() && frame.scale == 1;
}

bool IsAntialiased(const CropResize& crop, const Frame& frame) {
  return crop.how.antialias && !IsPlain(crop, frame);
}

constexpr float kDeepWhite = 65535;

// One byte of each sample of a deep image.
Image ByteOf(const Image& from, int shift) {
  Image bytes;
  bytes.Resize(from.height, from.width, from.channels);
  std::transform(from.deep.begin(), from.deep.end(), bytes.pixels.begin(),
                 [=](uint16_t value) { return static_cast<uint8_t>(value >> shift); });
  return bytes;
}

// The result for a deep image, [height, width, C] of 0 .. 65535, not rounded. A resize is linear
// until it rounds: it is that of the high bytes times 256 plus that of the low ones.
std::vector<float> DeepSamples(const CropResize& crop, const Image& from, const Frame& frame) {
  MXTRAIN_ASSERT(!IsAntialiased(crop, frame));
  const size_t line = static_cast<size_t>(crop.width()) * static_cast<size_t>(from.channels);
  std::vector<float> samples(line * static_cast<size_t>(crop.height()));
  for (const int shift : {8, 0}) {
    const Image bytes = ByteOf(from, shift);
    const auto weight = static_cast<float>(1 << shift);
    const auto add = [&](int y, const auto* values) {
      float* const to = samples.data() + static_cast<size_t>(y) * line;
      for (size_t i = 0; i < line; ++i) to[i] += weight * static_cast<float>(values[i]);
    };
    if (!IsPlain(crop, frame)) {
      ForEachLine(crop, bytes, frame, add);
      continue;
    }
    std::vector<uint8_t> mirrored(line);
    for (int y = 0; y < crop.height(); ++y) {
      const uint8_t* const row = PlainRow(crop, bytes, frame, y);
      if (crop.mirrored) CopyMirrored(row, bytes.channels, crop.width(), mirrored.data());
      add(y, crop.mirrored ? mirrored.data() : row);
    }
  }
  for (float& sample : samples) sample = std::clamp(sample, 0.0f, kDeepWhite);
  return samples;
}

}  // namespace

void CropResize::Crop(const Box& part) {
  window.y += upside_down ? window.height - part.y - part.height : part.y;
  window.x += mirrored ? window.width - part.x - part.width : part.x;
  window.height = part.height;
  window.width = part.width;
  if (resized()) return;
  box = {box.y + window.y, box.x + window.x, window.height, window.width};
  grid_height = box.height;
  grid_width = box.width;
  window = {0, 0, box.height, box.width};
}

bool CropResize::Resize(int new_height, int new_width, const Resampling& resampling) {
  if (new_height == window.height && new_width == window.width) return true;
  if (resized()) return false;
  grid_height = new_height;
  grid_width = new_width;
  window = {0, 0, new_height, new_width};
  how = resampling;
  return true;
}

PointMap CropResize::Map() const {
  const double sx = double(grid_width) / box.width, sy = double(grid_height) / box.height;
  PointMap map{sx, 0, -sx * box.x - window.x, 0, sy, -sy * box.y - window.y};
  if (mirrored) map.xx = -map.xx, map.x0 = window.width - map.x0;
  if (upside_down) map.yy = -map.yy, map.y0 = window.height - map.y0;
  return map;
}

Box CropResize::Needed() const {
  if (!resized()) return box;
  const auto part = [](int box_begin, int box_size, int grid, int begin, int size, int* from,
                       int* count) {
    const double step = double(box_size) / grid, reach = 4 * std::max(1.0, step) + 2;
    const int low = std::max(0, static_cast<int>(begin * step - reach));
    const int high = std::min(box_size, static_cast<int>((begin + size) * step + reach));
    *from = box_begin + low;
    *count = high - low;
  };
  Box needed;
  part(box.y, box.height, grid_height, window.y, window.height, &needed.y, &needed.height);
  part(box.x, box.width, grid_width, window.x, window.width, &needed.x, &needed.width);
  return needed;
}

double CropResize::MinScale() const {
  if (!resized()) return 1;
  return std::min(1.0, std::max(double(grid_height) / box.height, double(grid_width) / box.width));
}

void Apply(const CropResize& crop, const Image& from, const Frame& frame, Image* to) {
  MXTRAIN_ASSERT(to != &from);
  if (from.is_deep()) {
    const std::vector<float> samples = DeepSamples(crop, from, frame);
    to->ResizeDeep(crop.height(), crop.width(), from.channels);
    std::transform(samples.begin(), samples.end(), to->deep.begin(),
                   [](float value) { return static_cast<uint16_t>(std::lround(value)); });
    return;
  }
  to->Resize(crop.height(), crop.width(), from.channels);
  ApplyToPixels(crop, from, frame, to->pixels.data());
}

void ApplyToPixels(const CropResize& crop, const Image& from, const Frame& frame, uint8_t* pixels) {
  const size_t bytes = static_cast<size_t>(crop.width()) * static_cast<size_t>(from.channels);
  const auto row_of = [&](int y) { return pixels + static_cast<size_t>(y) * bytes; };
  if (IsAntialiased(crop, frame)) return Resample(crop, from, frame, pixels);
  if (!IsPlain(crop, frame)) {
    ForEachLine(crop, from, frame, [&](int y, const float* line) {
      HWY_DYNAMIC_DISPATCH(LineToBytes)(line, bytes, row_of(y));
    });
    return;
  }
  for (int y = 0; y < crop.height(); ++y) {
    const uint8_t* row = PlainRow(crop, from, frame, y);
    crop.mirrored ? CopyMirrored(row, from.channels, crop.width(), row_of(y))
                  : static_cast<void>(std::memcpy(row_of(y), row, bytes));
  }
}

void ApplyToPlanes(const CropResize& crop, const Image& from, const Frame& frame,
                   const PixelLevels& levels, float* planes) {
  const auto width = static_cast<size_t>(crop.width()),
             plane = width * static_cast<size_t>(crop.height());
  if (from.is_deep()) {
    const std::vector<float> samples = DeepSamples(crop, from, frame);
    const auto channels = static_cast<size_t>(from.channels);
    for (size_t i = 0; i < samples.size(); ++i) {
      const size_t c = i % channels;
      planes[c * plane + i / channels] =
          levels.by_255
              ? samples[i] / kDeepWhite
              : std::fma(samples[i] / (kDeepWhite / 255), levels.scale[c], levels.offset[c]);
    }
    return;
  }
  const bool plain = IsPlain(crop, frame);
  if (!plain && !IsAntialiased(crop, frame)) {
    ForEachLine(crop, from, frame, [&](int y, const float* line) {
      HWY_DYNAMIC_DISPATCH(LineToPlanes)
      (line, from.channels, width, levels.scale, levels.offset, levels.by_255,
       planes + static_cast<size_t>(y) * width, plane);
    });
    return;
  }
  const size_t bytes = width * static_cast<size_t>(from.channels);
  if (plain && bytes * static_cast<size_t>(crop.height()) == from.pixels.size() && !crop.mirrored &&
      !crop.upside_down) {
    return PixelsToPlanes(from.pixels, from.channels, levels, planes);
  }
  static thread_local Image copy;
  Apply(crop, from, frame, &copy);
  PixelsToPlanes(copy.pixels, copy.channels, levels, planes);
}

void PixelsToPlanes(std::span<const uint8_t> pixels, int channels, const PixelLevels& levels,
                    float* planes) {
  const size_t plane = pixels.size() / static_cast<size_t>(channels);
  const auto run = [&](const uint8_t* from, size_t n, float* to, size_t stride) {
    return HWY_DYNAMIC_DISPATCH(BytesToPlanes)(from, channels, n, levels.scale, levels.offset,
                                               levels.by_255, to, stride);
  };
  const size_t done = run(pixels.data(), plane, planes, plane), left = plane - done;
  if (left == 0) return;
  uint8_t rest[3 * kMostLanes] = {};
  float numbers[3 * kMostLanes];
  std::memcpy(rest, pixels.data() + done * static_cast<size_t>(channels),
              left * static_cast<size_t>(channels));
  run(rest, kMostLanes, numbers, kMostLanes);
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c)
    std::copy_n(numbers + c * kMostLanes, left, planes + c * plane + done);
}

void MixChannels(const float (&matrix)[3][4], Image* image) {
  MXTRAIN_ASSERT(image->channels == 3);
  const size_t pixels = image->pixels.size() / 3,
               done = HWY_DYNAMIC_DISPATCH(MixRgb)(matrix, pixels, image->pixels.data());
  if (done == pixels) return;
  uint8_t rest[3 * kMostLanes] = {};
  const size_t bytes = 3 * (pixels - done);
  std::memcpy(rest, image->pixels.data() + 3 * done, bytes);
  HWY_DYNAMIC_DISPATCH(MixRgb)(matrix, kMostLanes, rest);
  std::memcpy(image->pixels.data() + 3 * done, rest, bytes);
}

}  // namespace mxtrain::io
#endif  // HWY_ONCE
