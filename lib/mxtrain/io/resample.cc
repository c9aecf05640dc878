// SPDX-License-Identifier: Apache-2.0
// Pillow's arithmetic (src/libImaging/Resample.c): weights with 22 fractional bits, summed in 32
// bits. Compiled once per instruction set, like crop_resize.cc.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/io/resample.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace mxtrain::io {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kFraction = 22;  // fractional bits of a weight

// A vector of bytes from the sums of taps * weights, rounded; the taps' pixels are `stride` bytes
// apart.
template <typename D>
HWY_INLINE void SumTaps(D d, const uint8_t* from, size_t stride, const int32_t* weights, int taps,
                        uint8_t* to) {
  const hn::Rebind<uint8_t, D> d8;
  auto sum = hn::Set(d, 1 << (kFraction - 1));
  for (int t = 0; t < taps; ++t, from += stride)
    sum = hn::Add(sum, hn::Mul(hn::PromoteTo(d, hn::LoadU(d8, from)), hn::Set(d, weights[t])));
  hn::StoreU(hn::DemoteTo(d8, hn::ShiftRight<kFraction>(sum)), d8, to);
}

// A line of n bytes from the `taps` lines starting at `from`, `stride` bytes apart.
void SumLines(const uint8_t* from, size_t stride, const int32_t* weights, int taps, size_t n,
              uint8_t* to) {
  const hn::ScalableTag<int32_t> d;
  const hn::CappedTag<int32_t, 1> single;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) SumTaps(d, from + i, stride, weights, taps, to + i);
  if (i < n && n >= lanes) {  // the last whole vector overlaps the one before
    SumTaps(d, from + n - lanes, stride, weights, taps, to + n - lanes);
    return;
  }
  for (; i < n; ++i) SumTaps(single, from + i, stride, weights, taps, to + i);
}

// `width` pixels of three channels from a line; may access one byte beyond the end of each.
void SumPixelsRgb(const uint8_t* from, const int* first, const int32_t* weights, int taps,
                  int width, uint8_t* to) {
  const hn::CappedTag<int32_t, 4> d;
  for (int x = 0; x < width; ++x, weights += taps, to += 3) {
    for (size_t c = 0; c < 3; c += hn::Lanes(d))
      SumTaps(d, from + 3 * first[x] + c, 3, weights, taps, to + c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::io
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mxtrain/base/error.h"
#include "mxtrain/io/internal/resample.h"

namespace mxtrain::io {
HWY_EXPORT(SumLines);
HWY_EXPORT(SumPixelsRgb);

namespace {

constexpr int kFraction = 22;
// Bytes that a vector of any instruction set may access beyond an end.
constexpr size_t kSpare = 64;

double Triangle(double x) {
  return std::max(0.0, 1 - std::abs(x));
}

double Cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

struct Filter {
  double (*weight)(double);
  double support;
};

Filter FilterOf(int interpolation) {
  if (interpolation == kCubic) return {Cubic, 2};
  return {Triangle, 1};
}

// The input pixels of each result pixel in a line, with their weights.
struct Taps {
  int low = 0, high = 0;         // the decoded pixels used
  int count = 0;                 // of each
  std::vector<int> first;        // [n], counted from `low`
  std::vector<int32_t> weights;  // [n, count]
};

// One axis of a crop-resize.
struct Side {
  double begin, size;  // of the box in decoded pixels; fractional if the decoder reduced the image
  int least, most;     // edges of the box: whole pixels
  int grid, window_begin, window_size;
  bool reversed;
};

// The pixels from `begin` on for one new pixel; their weights sum to 1.
void Weigh(const Side& side, const Filter& filter, int at, int* begin,
           std::vector<double>* weights) {
  const double step = side.size / side.grid, reduction = std::max(1.0, step),
               inverse = 1 / reduction, support = filter.support * reduction;
  const double centre = side.begin - side.least + (at + 0.5) * step;
  *begin = std::max(0, static_cast<int>(std::floor(centre - support + 0.5)));
  const int end =
      std::min(side.most - side.least, static_cast<int>(std::floor(centre + support + 0.5)));
  weights->clear();
  double sum = 0;
  for (int i = *begin; i < end; ++i)
    sum += weights->emplace_back(filter.weight((i - centre + 0.5) * inverse));
  for (double& weight : *weights) weight /= sum;
}

void MakeTaps(const Side& side, const Filter& filter, Taps* taps) {
  const double reduction = std::max(1.0, side.size / side.grid);
  const int available = side.most - side.least;
  taps->count =
      std::min(available, 2 * static_cast<int>(std::ceil(filter.support * reduction)) + 1);
  taps->first.resize(static_cast<size_t>(side.window_size));
  taps->weights.assign(taps->first.size() * static_cast<size_t>(taps->count), 0);
  std::vector<double> weights;
  for (int i = 0; i < side.window_size; ++i) {
    int begin = 0;
    Weigh(side, filter, side.window_begin + (side.reversed ? side.window_size - 1 - i : i), &begin,
          &weights);
    const int first = std::min(begin, available - taps->count);
    taps->first[static_cast<size_t>(i)] = first;
    int32_t* const to = taps->weights.data() + i * taps->count + begin - first;
    std::transform(weights.begin(), weights.end(), to, [](double w) {
      return static_cast<int32_t>(w * (1 << kFraction) + (w < 0 ? -0.5 : 0.5));
    });
  }
  const int low = std::min(taps->first.front(), taps->first.back()),
            high = std::max(taps->first.front(), taps->first.back());
  taps->low = side.least + low;
  taps->high = side.least + high + taps->count;
  for (int& first : taps->first) first -= low;
}

// `covered_end`: of the decoded pixels.
Side SideOf(int box_begin, int box_size, int grid, int window_begin, int window_size, bool reversed,
            double scale, int covered_end) {
  const double begin = box_begin * scale, size = box_size * scale;
  const int least = static_cast<int>(std::floor(begin + 1e-6)),
            most = static_cast<int>(std::ceil(begin + size - 1e-6));
  return {begin, size,         least,       std::min(most, covered_end),
          grid,  window_begin, window_size, reversed};
}

// Reusable memory of a thread.
struct Workspace {
  Taps rows, columns;
  // With room behind the last byte.
  std::vector<uint8_t> narrow;  // rows of the result's width
  std::vector<uint8_t> line;    // a row of the image, or of sums of its rows
};

void SumPixels(const uint8_t* from, int channels, const Taps& taps, uint8_t* to) {
  const auto width = static_cast<int>(taps.first.size());
  if (channels == 3)
    return HWY_DYNAMIC_DISPATCH(SumPixelsRgb)(from, taps.first.data(), taps.weights.data(),
                                              taps.count, width, to);
  const int32_t* weights = taps.weights.data();
  for (int x = 0; x < width; ++x, weights += taps.count) {
    const uint8_t* at = from + taps.first[static_cast<size_t>(x)];
    int32_t sum = 1 << (kFraction - 1);
    for (int t = 0; t < taps.count; ++t) sum += at[t] * weights[t];
    to[x] = static_cast<uint8_t>(std::clamp(sum >> kFraction, 0, 255));
  }
}

// The required columns of an image's rows.
struct Strip {
  const Image& image;
  int y, x;      // of the first decoded pixel that is required
  size_t bytes;  // of a row

  const uint8_t* row(int i) const { return image.row(y + i) + x * image.channels; }
  size_t stride() const { return image.pixels.size() / static_cast<size_t>(image.height); }
};

void RowsFirst(const Strip& from, Workspace& work, size_t width, uint8_t* pixels) {
  const int count = work.rows.high - work.rows.low;
  work.narrow.resize(width * static_cast<size_t>(count) + kSpare);
  work.line.resize(from.bytes + kSpare);
  const uint8_t* const end = from.image.pixels.data() + from.image.pixels.size();
  uint8_t* narrow = work.narrow.data();
  for (int y = 0; y < count; ++y, narrow += width) {
    const uint8_t* row = from.row(y);
    if (static_cast<size_t>(end - row) < from.bytes + kSpare)
      row = static_cast<const uint8_t*>(std::memcpy(work.line.data(), row, from.bytes));
    SumPixels(row, from.image.channels, work.columns, narrow);
  }
  const int32_t* weights = work.rows.weights.data();
  for (const int first : work.rows.first) {
    HWY_DYNAMIC_DISPATCH(SumLines)
    (work.narrow.data() + width * static_cast<size_t>(first), width, weights, work.rows.count,
     width, pixels);
    weights += work.rows.count, pixels += width;
  }
}

void ColumnsFirst(const Strip& from, Workspace& work, size_t width, uint8_t* pixels) {
  work.line.resize(from.bytes + kSpare);
  work.narrow.resize(width + kSpare);
  const int32_t* weights = work.rows.weights.data();
  for (const int first : work.rows.first) {
    HWY_DYNAMIC_DISPATCH(SumLines)
    (from.row(first), from.stride(), weights, work.rows.count, from.bytes, work.line.data());
    SumPixels(work.line.data(), from.image.channels, work.columns, work.narrow.data());
    std::memcpy(pixels, work.narrow.data(), width);
    weights += work.rows.count, pixels += width;
  }
}

// If Pillow 13 resizes the columns first; earlier versions always begin with the rows.
bool BeginsWithColumns(const CropResize& crop) {
  const int64_t lower = crop.box.height - crop.grid_height,
                narrower = crop.box.width - crop.grid_width;
  return lower > 0 && lower > 2 * narrower;
}

}  // namespace

void Resample(const CropResize& crop, const Image& from, const Frame& frame, uint8_t* pixels) {
  static thread_local Workspace work;
  const Filter filter = FilterOf(crop.how.interpolation);
  const Box &box = crop.box, &window = crop.window, &covers = frame.covers;
  MakeTaps(SideOf(box.y, box.height, crop.grid_height, window.y, window.height, crop.upside_down,
                  frame.scale, covers.y + covers.height),
           filter, &work.rows);
  MakeTaps(SideOf(box.x, box.width, crop.grid_width, window.x, window.width, crop.mirrored,
                  frame.scale, covers.x + covers.width),
           filter, &work.columns);

  const auto channels = static_cast<size_t>(from.channels);
  const Strip strip{from, work.rows.low - covers.y, work.columns.low - covers.x,
                    channels * static_cast<size_t>(work.columns.high - work.columns.low)};
  const auto resize = BeginsWithColumns(crop) ? ColumnsFirst : RowsFirst;
  resize(strip, work, channels * static_cast<size_t>(window.width), pixels);
}

}  // namespace mxtrain::io
#endif  // HWY_ONCE
