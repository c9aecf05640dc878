// SPDX-License-Identifier: Apache-2.0
// image_blocked_kernels.h, compiled once per instruction set; the best supported set is selected at
// run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/convolution/image_blocked_kernels_simd.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/operators/convolution/image_blocked_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace mxtrain::image_blocked {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
// The sums of a tile stay in registers: 32 with the widest vectors, else 16.
constexpr bool kManyRegisters = kLanes >= 16;
constexpr int kTiles[] = {kManyRegisters ? 12 : 6, kManyRegisters ? 10 : 5, kManyRegisters ? 8 : 4};
constexpr int kGradientTile = kManyRegisters ? 5 : 2;
constexpr int64_t kMaxTaps = 5;  // of a window row, summed at a time

int64_t LaneCount() {
  return kLanes;
}
int64_t FilterTile(int64_t filters) {
  const auto padded = [filters](int64_t tile) { return RoundUp(filters, tile); };
  return *std::min_element(std::begin(kTiles), std::end(kTiles),
                           [&](int a, int b) { return padded(a) < padded(b); });
}
int64_t FilterTileOfGradient() {
  return kGradientTile;
}

// Taps [first, last) of a window at `at` that are inside `size` cells.
struct Taps {
  int64_t first, last;
  Taps(int64_t at, int64_t shift, int64_t kernel, int64_t size)
      : first(std::max<int64_t>(0, shift - at)), last(std::min(kernel, size + shift - at)) {}
};

template <int kFilters, int kBlocks>
HWY_INLINE void CorrelateCell(const Correlation& c, const float* packed, int64_t first, int64_t y,
                              int64_t x, int64_t block) {
  const Tag d;
  const int64_t source_block = c.channels * c.height * c.width * kLanes;
  const float* source = c.source + block * source_block;
  Vector sums[kFilters][kBlocks];
#pragma GCC unroll 12
  for (int f = 0; f < kFilters; ++f) {
#pragma GCC unroll 2
    for (int v = 0; v < kBlocks; ++v) sums[f][v] = hn::Zero(d);
  }
  const Taps rows(y, c.shift[0], c.kernel[0], c.height),
      columns(x, c.shift[1], c.kernel[1], c.width);
  for (int64_t channel = 0; channel < c.channels; ++channel) {
    for (int64_t i = rows.first; i < rows.last; ++i) {
      const float* cell = source + ((channel * c.height + y + i - c.shift[0]) * c.width + x +
                                    columns.first - c.shift[1]) *
                                       kLanes;
      const float* weight =
          packed + ((channel * c.kernel[0] + i) * c.kernel[1] + columns.first) * kFilters;
      for (int64_t j = columns.first; j < columns.last; ++j, cell += kLanes, weight += kFilters) {
        Vector cells[kBlocks];
#pragma GCC unroll 2
        for (int v = 0; v < kBlocks; ++v) cells[v] = hn::LoadU(d, cell + v * source_block);
#pragma GCC unroll 12
        for (int f = 0; f < kFilters; ++f) {
          const Vector w = hn::Set(d, weight[f]);
#pragma GCC unroll 2
          for (int v = 0; v < kBlocks; ++v) sums[f][v] = hn::MulAdd(w, cells[v], sums[f][v]);
        }
      }
    }
  }
  const int64_t plane = c.out_height * c.out_width * kLanes;
  const Vector low = hn::Set(d, c.low), high = hn::Set(d, c.high);
  float* out = c.out + (block * c.filters + first) * plane + (y * c.out_width + x) * kLanes;
#pragma GCC unroll 12
  for (int f = 0; f < kFilters; ++f) {
    if (first + f >= c.filters) break;
    const Vector bias = hn::Set(d, c.bias ? c.bias[first + f] : 0.0f);
#pragma GCC unroll 2
    for (int v = 0; v < kBlocks; ++v) {
      float* to = out + (v * c.filters + f) * plane;
      Vector sum = hn::Add(sums[f][v], bias);
      if (c.accumulate) sum = hn::Add(hn::LoadU(d, to), sum);
      hn::StoreU(hn::Min(high, hn::Max(low, sum)), d, to);  // this operand order keeps NaN
    }
  }
}

template <int kFilters>
void CorrelateRowOf(const Correlation& c, int64_t tile, int64_t y, int64_t block, int64_t blocks) {
  const float* packed = c.packed + tile * c.channels * c.kernel[0] * c.kernel[1] * kFilters;
  for (int64_t x = 0; x < c.out_width; ++x) {
    if (blocks == kBlocksAtATime) {
      CorrelateCell<kFilters, kBlocksAtATime>(c, packed, tile * kFilters, y, x, block);
    } else {
      CorrelateCell<kFilters, 1>(c, packed, tile * kFilters, y, x, block);
    }
  }
}

void RowOfTile(const Correlation& c, int64_t tile, int64_t y, int64_t block, int64_t blocks) {
  if (c.tile == kTiles[0]) return CorrelateRowOf<kTiles[0]>(c, tile, y, block, blocks);
  if (c.tile == kTiles[1]) return CorrelateRowOf<kTiles[1]>(c, tile, y, block, blocks);
  CorrelateRowOf<kTiles[2]>(c, tile, y, block, blocks);
}

// A run of cells of the output, x in [first, last), and the rows [top, bottom).
struct Region {
  int64_t top, bottom, first, last;
};

// sums[f * step + t] += the products of head f with the cells under tap j + t of row i, over a
// region of one block.
template <int kFilters, int kTaps>
HWY_INLINE void AddTaps(const WeightGradient& g, const Region& region, const float* image,
                        const float* head, int64_t i, int64_t j, float* sums, int64_t step) {
  const Tag d;
  const int64_t plane = g.out_height * g.out_width * kLanes;
  Vector total[kFilters][kTaps];
#pragma GCC unroll 5
  for (int f = 0; f < kFilters; ++f) {
#pragma GCC unroll 5
    for (int t = 0; t < kTaps; ++t) total[f][t] = hn::Load(d, sums + (f * step + t) * kLanes);
  }
  for (int64_t y = region.top; y < region.bottom; ++y) {
    const float* h = head + (y * g.out_width + region.first) * kLanes;
    const float* cell =
        image + ((y + i - g.pad[0]) * g.width + region.first + j - g.pad[1]) * kLanes;
    for (int64_t x = region.first; x < region.last; ++x, h += kLanes, cell += kLanes) {
      Vector cells[kTaps];
#pragma GCC unroll 5
      for (int t = 0; t < kTaps; ++t) cells[t] = hn::LoadU(d, cell + t * kLanes);
#pragma GCC unroll 5
      for (int f = 0; f < kFilters; ++f) {
        const Vector gradient = hn::LoadU(d, h + f * plane);
#pragma GCC unroll 5
        for (int t = 0; t < kTaps; ++t) total[f][t] = hn::MulAdd(gradient, cells[t], total[f][t]);
      }
    }
  }
#pragma GCC unroll 5
  for (int f = 0; f < kFilters; ++f) {
#pragma GCC unroll 5
    for (int t = 0; t < kTaps; ++t) hn::Store(total[f][t], d, sums + (f * step + t) * kLanes);
  }
}

// Taps [j, j + kTaps) of row i: together if all are inside the image, one by one at its borders.
template <int kFilters, int kTaps>
void AddKernel(const WeightGradient& g, const float* image, const float* head, int64_t i, int64_t j,
               float* sums) {
  const int64_t step = g.kernel[0] * g.kernel[1];
  Region region{std::max<int64_t>(0, g.pad[0] - i), std::min(g.out_height, g.height + g.pad[0] - i),
                0, 0};
  const auto first = [&](int64_t tap) { return std::max<int64_t>(0, g.pad[1] - tap); };
  const auto last = [&](int64_t tap) { return std::min(g.out_width, g.width + g.pad[1] - tap); };
  const int64_t inner_first = first(j), inner_last = std::max(last(j + kTaps - 1), inner_first);
  float* row = sums + (i * g.kernel[1] + j) * kLanes;
  if (inner_first < inner_last) {
    region.first = inner_first, region.last = inner_last;
    AddTaps<kFilters, kTaps>(g, region, image, head, i, j, row, step);
  }
  for (int64_t t = 0; t < kTaps; ++t) {
    for (const auto& [begin, end] : {std::pair{first(j + t), std::min(inner_first, last(j + t))},
                                     {std::max(inner_last, first(j + t)), last(j + t)}}) {
      if (begin >= end) continue;
      region.first = begin, region.last = end;
      AddTaps<kFilters, 1>(g, region, image, head, i, j + t, row + t * kLanes, step);
    }
  }
}

template <int kFilters>
void AddWindow(const WeightGradient& g, const float* image, const float* head, float* sums) {
  for (int64_t i = 0; i < g.kernel[0]; ++i) {
    for (int64_t j = 0; j < g.kernel[1]; j += kMaxTaps) {
      switch (std::min(kMaxTaps, g.kernel[1] - j)) {
        case 1:
          AddKernel<kFilters, 1>(g, image, head, i, j, sums);
          break;
        case 2:
          AddKernel<kFilters, 2>(g, image, head, i, j, sums);
          break;
        case 3:
          AddKernel<kFilters, 3>(g, image, head, i, j, sums);
          break;
        case 4:
          AddKernel<kFilters, 4>(g, image, head, i, j, sums);
          break;
        default:
          AddKernel<kFilters, kMaxTaps>(g, image, head, i, j, sums);
          break;
      }
    }
  }
}

void Gradient(const WeightGradient& g, int64_t channel, int64_t first, int64_t filters,
              float* result) {
  HWY_ALIGN float sums[kGradientTile * kMaxWindow * kLanes];
  const int64_t count = filters * g.kernel[0] * g.kernel[1];
  std::fill_n(sums, count * kLanes, 0.0f);
  for (int64_t block = 0; block < g.blocks; ++block) {
    const float* image = g.image + (block * g.channels + channel) * g.height * g.width * kLanes;
    const float* head = g.head + (block * g.filters + first) * g.out_height * g.out_width * kLanes;
    if (filters == kGradientTile) {
      AddWindow<kGradientTile>(g, image, head, sums);
    } else {
      AddWindow<1>(g, image, head, sums);
    }
  }
  const Tag d;
  for (int64_t k = 0; k < count; ++k)
    result[k] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + k * kLanes)));
}

float Total(const float* data, int64_t n) {
  const Tag d;
  Vector even = hn::Zero(d), odd = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    even = hn::Add(even, hn::LoadU(d, data + i));
    odd = hn::Add(odd, hn::LoadU(d, data + i + kLanes));
  }
  if (i < n) even = hn::Add(even, hn::LoadU(d, data + i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::image_blocked
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mxtrain::image_blocked {
HWY_EXPORT(LaneCount);
HWY_EXPORT(FilterTile);
HWY_EXPORT(FilterTileOfGradient);
HWY_EXPORT(RowOfTile);
HWY_EXPORT(Gradient);
HWY_EXPORT(Total);

int64_t Width() {
  return HWY_DYNAMIC_DISPATCH(LaneCount)();
}
int64_t TileOf(int64_t filters) {
  return HWY_DYNAMIC_DISPATCH(FilterTile)(filters);
}
int64_t GradientTile() {
  return HWY_DYNAMIC_DISPATCH(FilterTileOfGradient)();
}
void CorrelateRow(const Correlation& c, int64_t tile, int64_t y, int64_t block, int64_t blocks) {
  HWY_DYNAMIC_DISPATCH(RowOfTile)(c, tile, y, block, blocks);
}
void GradientOf(const WeightGradient& g, int64_t channel, int64_t first, int64_t filters,
                float* sums) {
  HWY_DYNAMIC_DISPATCH(Gradient)(g, channel, first, filters, sums);
}
float SumOf(const float* data, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(Total)(data, n);
}

}  // namespace mxtrain::image_blocked

#endif  // HWY_ONCE
