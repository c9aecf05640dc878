// SPDX-License-Identifier: Apache-2.0
// winograd_kernels.h, compiled once per instruction set; the best supported set is selected at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/convolution/winograd_kernels_simd.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <utility>

#include "mxtrain/base/math.h"
#include "mxtrain/operators/convolution/winograd_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace mxtrain::winograd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, kMaxBlock>;
using Vector = hn::Vec<Tag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
constexpr int64_t kShortest = 8;
// Tiles per product: with kGroup vectors of filters their sums fill the registers, 32 with the
// widest vectors, else 16.
constexpr int64_t kMaxTiles = kLanes >= kMaxBlock ? 14 : 6;

// The points +-kA, +-kB; kSum and kProduct are the coefficients of (x^2 - kA^2)(x^2 - kB^2).
constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB, kSum = kA2 + kB2, kProduct = kA2 * kB2;

int64_t LaneCount() {
  return kLanes >= kShortest ? kLanes : 0;
}

// Values of six cells of a patch at the six points: coefficients of the product of (x - p) over the
// other points.
HWY_INLINE void PatchAtPoints(const Vector* d, Vector* out, int64_t step) {
  const Tag tag;
  const Vector a = hn::Set(tag, kA), b = hn::Set(tag, kB), a2 = hn::Set(tag, kA2),
               b2 = hn::Set(tag, kB2);
  const Vector sum = hn::Set(tag, kSum), product = hn::Set(tag, kProduct);
  const Vector even_a = hn::NegMulAdd(b2, d[2], d[4]), odd_a = hn::NegMulAdd(b2, d[1], d[3]);
  const Vector even_b = hn::NegMulAdd(a2, d[2], d[4]), odd_b = hn::NegMulAdd(a2, d[1], d[3]);
  out[0] = hn::MulAdd(product, d[0], hn::NegMulAdd(sum, d[2], d[4]));
  out[step] = hn::MulAdd(a, odd_a, even_a);
  out[2 * step] = hn::NegMulAdd(a, odd_a, even_a);
  out[3 * step] = hn::MulAdd(b, odd_b, even_b);
  out[4 * step] = hn::NegMulAdd(b, odd_b, even_b);
  out[5 * step] = hn::MulAdd(product, d[1], hn::NegMulAdd(sum, d[3], d[5]));
}

// The filter's polynomial g0 + g1 x + g2 x^2 at the points, over the product of the distances to
// the other ones.
HWY_INLINE void FilterAtPoints(Vector g0, Vector g1, Vector g2, Vector* out, int64_t step) {
  const Tag tag;
  constexpr double kNearScale = 1 / (2.0 * kA2 * (kA2 - kB2)),
                   kFarScale = 1 / (2.0 * kB2 * (kB2 - kA2)), kZeroScale = 1 / (1.0 * kProduct);
  const auto pair = [&](double scale, double point, Vector* plus, Vector* minus) {
    const Vector even = hn::MulAdd(hn::Set(tag, static_cast<float>(scale * point * point)), g2,
                                   hn::Mul(hn::Set(tag, static_cast<float>(scale)), g0));
    const Vector slope = hn::Set(tag, static_cast<float>(scale * point));
    *plus = hn::MulAdd(slope, g1, even);
    *minus = hn::NegMulAdd(slope, g1, even);
  };
  out[0] = hn::Mul(hn::Set(tag, static_cast<float>(kZeroScale)), g0);
  pair(kNearScale, kA, out + step, out + 2 * step);
  pair(kFarScale, kB, out + 3 * step, out + 4 * step);
  out[5 * step] = g2;
}

// Four outputs from the products at the points.
HWY_INLINE void OutputsFromPoints(const Vector* m, int64_t step, Vector* out) {
  const Tag tag;
  const Vector near_sum = hn::Add(m[step], m[2 * step]),
               near_difference = hn::Sub(m[step], m[2 * step]);
  const Vector far_sum = hn::Add(m[3 * step], m[4 * step]),
               far_difference = hn::Sub(m[3 * step], m[4 * step]);
  out[0] = hn::Add(m[0], hn::Add(near_sum, far_sum));
  out[1] = hn::MulAdd(hn::Set(tag, kA), near_difference, hn::Mul(hn::Set(tag, kB), far_difference));
  out[2] = hn::MulAdd(hn::Set(tag, kA2), near_sum, hn::Mul(hn::Set(tag, kB2), far_sum));
  out[3] = hn::MulAdd(hn::Set(tag, kA2 * kA), near_difference,
                      hn::MulAdd(hn::Set(tag, kB2 * kB), far_difference, m[5 * step]));
}

// Iterates over the tiles of a run: image, row and column of each.
struct Walk {
  int64_t rows, columns, image, row, column;
  Walk(const Correlation& c, int64_t first)
      : rows(c.rows),
        columns(c.columns),
        image(first / (rows * columns)),
        row(first / columns % rows),
        column(first % columns) {}
  void Next() {
    if (++column < columns) return;
    column = 0;
    if (++row < rows) return;
    row = 0;
    ++image;
  }
};

// `from`: the patch's first cell, which may be outside the image. Cells [top, bottom) x [left,
// right) of the patch are inside.
struct Inside {
  int64_t top, bottom, left, right;
  bool All() const { return top == 0 && left == 0 && bottom == kPatch && right == kPatch; }
};

template <bool kAll>
HWY_INLINE void TransformPatch(const float* from, int64_t row_stride, const Inside& in, float* to,
                               int64_t stride) {
  const Tag tag;
  Vector half[kPatch * kPatch];
#pragma GCC unroll 6
  for (int64_t i = 0; i < kPatch; ++i) {
    Vector cells[kPatch];
    const bool row = kAll || (i >= in.top && i < in.bottom);
#pragma GCC unroll 6
    for (int64_t j = 0; j < kPatch; ++j) {
      const bool inside = kAll || (row && j >= in.left && j < in.right);
      cells[j] = inside ? hn::LoadU(tag, from + i * row_stride + j * kLanes) : hn::Zero(tag);
    }
    PatchAtPoints(cells, half + i * kPatch, 1);
  }
#pragma GCC unroll 6
  for (int64_t j = 0; j < kPatch; ++j) {
    Vector column[kPatch], result[kPatch];
#pragma GCC unroll 6
    for (int64_t i = 0; i < kPatch; ++i) column[i] = half[i * kPatch + j];
    PatchAtPoints(column, result, 1);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kPatch; ++i) hn::StoreU(result[i], tag, to + (i * kPatch + j) * stride);
  }
}

void Patches(const Correlation& c, const Piece& piece, int64_t block, int64_t begin, int64_t end) {
  const int64_t stride = CellStride(c.channel_blocks * c.capacity * kLanes),
                row_stride = c.width * kLanes;
  float* to = piece.patches + (block * c.capacity + begin) * kLanes;
  Walk at(c, piece.first + begin);
  for (int64_t t = begin; t < end; ++t, at.Next(), to += kLanes) {
    const int64_t y = at.row * kTile - c.pad[0], x = at.column * kTile - c.pad[1];
    const Inside in{std::max<int64_t>(0, -y), std::min(kPatch, c.height - y),
                    std::max<int64_t>(0, -x), std::min(kPatch, c.width - x)};
    const float* from = c.source + (at.image * c.channel_blocks + block) * c.height * row_stride +
                        y * row_stride + x * kLanes;
    if (in.All()) {
      TransformPatch<true>(from, row_stride, in, to, stride);
    } else {
      TransformPatch<false>(from, row_stride, in, to, stride);
    }
  }
}

struct EndingVectors {
  Vector bias, low, high;
  bool accumulate;
};

template <bool kAll>
HWY_INLINE void TransformProduct(const float* from, int64_t stride, const EndingVectors& ending,
                                 int64_t height, int64_t width, float* to, int64_t row_stride) {
  const Tag tag;
  Vector half[kPatch * kTile];
#pragma GCC unroll 6
  for (int64_t i = 0; i < kPatch; ++i) {
    Vector cells[kPatch];
#pragma GCC unroll 6
    for (int64_t j = 0; j < kPatch; ++j)
      cells[j] = hn::LoadU(tag, from + (i * kPatch + j) * stride);
    OutputsFromPoints(cells, 1, half + i * kTile);
  }
#pragma GCC unroll 4
  for (int64_t j = 0; j < kTile; ++j) {
    if (!kAll && j >= width) break;
    Vector result[kTile];
    OutputsFromPoints(half + j, kTile, result);
#pragma GCC unroll 4
    for (int64_t i = 0; i < kTile; ++i) {
      if (!kAll && i >= height) break;
      float* cell = to + i * row_stride + j * kLanes;
      Vector sum = hn::Add(result[i], ending.bias);
      if (ending.accumulate) sum = hn::Add(hn::LoadU(tag, cell), sum);
      // This operand order keeps NaN.
      hn::StoreU(hn::Min(ending.high, hn::Max(ending.low, sum)), tag, cell);
    }
  }
}

void Outputs(const Correlation& c, const Piece& piece, int64_t block, int64_t begin, int64_t end) {
  const Tag tag;
  const int64_t stride = CellStride(c.filter_blocks * c.capacity * kLanes),
                row_stride = c.out_width * kLanes;
  const float* from = piece.products + (block * c.capacity + begin) * kLanes;
  HWY_ALIGN float biases[kMaxBlock] = {};
  if (c.ending.bias)
    std::copy_n(c.ending.bias + block * kLanes, std::min(kLanes, c.filters - block * kLanes),
                biases);
  const EndingVectors ending{hn::Load(tag, biases), hn::Set(tag, c.ending.low),
                             hn::Set(tag, c.ending.high), c.ending.accumulate};
  Walk at(c, piece.first + begin);
  for (int64_t t = begin; t < end; ++t, at.Next(), from += kLanes) {
    const int64_t y = at.row * kTile, x = at.column * kTile;
    const int64_t height = std::min(kTile, c.out_height - y),
                  width = std::min(kTile, c.out_width - x);
    float* to =
        c.out + ((at.image * c.filter_blocks + block) * c.out_height + y) * row_stride + x * kLanes;
    if (height == kTile && width == kTile) {
      TransformProduct<true>(from, stride, ending, height, width, to, row_stride);
    } else {
      TransformProduct<false>(from, stride, ending, height, width, to, row_stride);
    }
  }
}

// Factors and result of one product of a run of channels.
struct Factors {
  const float* weights;  // [channels][kVectors][b]
  const float* patches;  // [channel block][capacity][b]
  int64_t channel_blocks;
  int64_t capacity;
  float* sums;  // [kVectors][capacity][b]
  bool add;     // accumulate
};

template <int kVectors, int kTiles>
void MultiplyTiles(const Factors& f) {
  const Tag tag;
  Vector sums[kVectors][kTiles];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 14
    for (int t = 0; t < kTiles; ++t) sums[v][t] = hn::Zero(tag);
  }
  const float* weights = f.weights;
  const float* patches = f.patches;
  for (int64_t block = 0; block < f.channel_blocks; ++block, patches += f.capacity * kLanes) {
    const float* cell = patches;
    for (int64_t k = 0; k < kLanes; ++k, ++cell, weights += kVectors * kLanes) {
      Vector w[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) w[v] = hn::LoadU(tag, weights + v * kLanes);
#pragma GCC unroll 14
      for (int t = 0; t < kTiles; ++t) {
        const Vector value = hn::Set(tag, cell[t * kLanes]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[v][t] = hn::MulAdd(w[v], value, sums[v][t]);
      }
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 14
    for (int t = 0; t < kTiles; ++t) {
      float* to = f.sums + (v * f.capacity + t) * kLanes;
      hn::StoreU(f.add ? hn::Add(hn::LoadU(tag, to), sums[v][t]) : sums[v][t], tag, to);
    }
  }
}

// [tiles - 1]: the product of that many tiles.
using Multiplier = void (*)(const Factors&);
template <int kVectors, int... kCounts>
constexpr std::array<Multiplier, sizeof...(kCounts)> MultipliersOf(
    std::integer_sequence<int, kCounts...>) {
  return {&MultiplyTiles<kVectors, kCounts + 1>...};
}
constexpr auto kWide = MultipliersOf<kGroup>(std::make_integer_sequence<int, kMaxTiles>());
constexpr auto kNarrow = MultipliersOf<1>(std::make_integer_sequence<int, kMaxTiles>());

void Products(const Correlation& c, const Piece& piece, int64_t cell, int64_t group) {
  const int64_t vectors = std::min(kGroup, c.filter_blocks - group * kGroup),
                channels = c.channel_blocks * kLanes;
  const auto& multipliers = vectors == kGroup ? kWide : kNarrow;
  const float* weights = c.packed + cell * CellStride(c.filter_blocks * kLanes * channels) +
                         group * kGroup * kLanes * channels;
  const float* patches = piece.patches + cell * CellStride(c.channel_blocks * c.capacity * kLanes);
  float* sums = piece.products + cell * CellStride(c.filter_blocks * c.capacity * kLanes) +
                group * kGroup * c.capacity * kLanes;
  const int64_t steps = CeilDivide(piece.count, kMaxTiles);
  for (int64_t block = 0; block < c.channel_blocks; block += kRun / kLanes) {
    Factors f{weights + block * kLanes * vectors * kLanes,
              nullptr,
              std::min(kRun / kLanes, c.channel_blocks - block),
              c.capacity,
              nullptr,
              block > 0};
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t first = s * piece.count / steps, count = (s + 1) * piece.count / steps - first;
      f.patches = patches + (block * c.capacity + first) * kLanes;
      f.sums = sums + first * kLanes;
      multipliers[static_cast<size_t>(count - 1)](f);
    }
  }
}

// Packed weights too large for any cache are written around the caches.
constexpr int64_t kStreamedBytes = int64_t{16} << 20;

// Weights of one block, [tap][row][b], become [row index][b] in each cell.
template <bool kStream>
HWY_INLINE void PackRow(const float* weights, float* to, int64_t stride) {
  const Tag tag;
  constexpr int64_t kStep = kLanes * kLanes;
  Vector half[kWindow * kPatch];
#pragma GCC unroll 3
  for (int64_t i = 0; i < kWindow; ++i) {
    const float* row = weights + i * kWindow * kStep;
    FilterAtPoints(hn::LoadU(tag, row), hn::LoadU(tag, row + kStep),
                   hn::LoadU(tag, row + 2 * kStep), half + i * kPatch, 1);
  }
#pragma GCC unroll 6
  for (int64_t j = 0; j < kPatch; ++j) {
    Vector result[kPatch];
    FilterAtPoints(half[j], half[kPatch + j], half[2 * kPatch + j], result, 1);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kPatch; ++i) {
      float* cell = to + (i * kPatch + j) * stride;
      if constexpr (kStream) {
        hn::Stream(result[i], tag, cell);
      } else {
        hn::StoreU(result[i], tag, cell);
      }
    }
  }
}

void Pack(const Packing& p, const float* weights, int64_t filter_block, int64_t channel_block,
          float* packed) {
  constexpr int64_t kSquare = kLanes * kLanes;
  HWY_ALIGN float turned[kTaps * kSquare];
  if (p.turned) {
    for (int64_t tap = 0; tap < kTaps; ++tap) {
      const float* from = weights + (kTaps - 1 - tap) * kSquare;
      float* to = turned + tap * kSquare;
      for (int64_t i = 0; i < kLanes; ++i) {
        for (int64_t j = 0; j < kLanes; ++j) to[i * kLanes + j] = from[j * kLanes + i];
      }
    }
    weights = turned;
  }
  const int64_t group = filter_block / kGroup,
                vectors = std::min(kGroup, p.filter_blocks - group * kGroup);
  const int64_t channels = p.channel_blocks * kLanes,
                stride = CellStride(p.filter_blocks * kLanes * channels);
  float* to = packed + (group * kGroup * channels + channel_block * kLanes * vectors +
                        filter_block % kGroup) *
                           kLanes;
  if (kCells * stride * static_cast<int64_t>(sizeof(float)) < kStreamedBytes) {
    for (int64_t k = 0; k < kLanes; ++k)
      PackRow<false>(weights + k * kLanes, to + k * vectors * kLanes, stride);
    return;
  }
  for (int64_t k = 0; k < kLanes; ++k)
    PackRow<true>(weights + k * kLanes, to + k * vectors * kLanes, stride);
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::winograd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mxtrain::winograd {
HWY_EXPORT(LaneCount);
HWY_EXPORT(Patches);
HWY_EXPORT(Products);
HWY_EXPORT(Outputs);
HWY_EXPORT(Pack);

int64_t BlockSize() {
  return HWY_DYNAMIC_DISPATCH(LaneCount)();
}
void TransformPatches(const Correlation& c, const Piece& piece, int64_t block, int64_t begin,
                      int64_t end) {
  HWY_DYNAMIC_DISPATCH(Patches)(c, piece, block, begin, end);
}
void Multiply(const Correlation& c, const Piece& piece, int64_t cell, int64_t group) {
  HWY_DYNAMIC_DISPATCH(Products)(c, piece, cell, group);
}
void TransformProducts(const Correlation& c, const Piece& piece, int64_t block, int64_t begin,
                       int64_t end) {
  HWY_DYNAMIC_DISPATCH(Outputs)(c, piece, block, begin, end);
}
void PackBlock(const Packing& p, const float* weights, int64_t filter_block, int64_t channel_block,
               float* packed) {
  HWY_DYNAMIC_DISPATCH(Pack)(p, weights, filter_block, channel_block, packed);
}

}  // namespace mxtrain::winograd

#endif  // HWY_ONCE
