// SPDX-License-Identifier: Apache-2.0
// grouped_kernels.h, compiled once per instruction set; the best supported set is selected at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/convolution/grouped_kernels_simd.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <algorithm>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/math.h"
#include "mxtrain/operators/convolution/grouped_kernels.h"
#include "mxtrain/operators/softmax/row_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace mxtrain::grouped {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using row_vectors::HWY_NAMESPACE::kLanes;
using row_vectors::HWY_NAMESPACE::Load;
using row_vectors::HWY_NAMESPACE::Store;
using row_vectors::HWY_NAMESPACE::Tag;
using row_vectors::HWY_NAMESPACE::Vector;

int64_t LaneCount() {
  return kLanes;
}

// Channel k of the group of each lane.
template <int kGroup>
class GroupLanes {
 public:
  GroupLanes() {
    HWY_ALIGN int32_t lanes[kGroup][kLanes];
    for (int k = 0; k < kGroup; ++k) {
      for (int64_t lane = 0; lane < kLanes; ++lane)
        lanes[k][lane] = static_cast<int32_t>(lane / kGroup * kGroup + k);
      indices_[k] = hn::SetTableIndices(Tag(), lanes[k]);
    }
  }
  HWY_INLINE Vector operator()(Vector channels, int k) const {
    return hn::TableLookupLanes(channels, indices_[k]);
  }

 private:
  decltype(hn::SetTableIndices(Tag(), static_cast<const int32_t*>(nullptr))) indices_[kGroup];
};
template <>
class GroupLanes<1> {
 public:
  HWY_INLINE Vector operator()(Vector channels, int) const { return channels; }
};

// kCells results from t on, which see every tap in `taps`.
template <int kGroup, int kCells, typename T>
HWY_INLINE void ConvolveCells(const Line<T>& line, const Results& rows, int64_t y,
                              const Results& columns, int64_t t) {
  const Tag d;
  const GroupLanes<kGroup> group;
  const int64_t step = columns.source_step * line.source_steps.cell;
  Vector sums[kCells];
#pragma GCC unroll 8
  for (int v = 0; v < kCells; ++v) sums[v] = hn::Zero(d);
  for (const Tap& row : rows.taps) {
    if (y < row.first || y >= row.last) continue;
    const T* source =
        line.source + (y * rows.source_step + row.offset) * line.source_steps.row + t * step;
    const float* weight = line.weight + row.cell * line.kernel_width * kGroup * kLanes;
    for (const Tap& column : columns.taps) {
      if (kCells == 1 && (t < column.first || t >= column.last)) continue;
      const float* w = weight + column.cell * kGroup * kLanes;
      const T* cell = source + column.offset * line.source_steps.cell;
#pragma GCC unroll 8
      for (int v = 0; v < kCells; ++v) {
        const Vector channels = Load(cell + v * step);
#pragma GCC unroll 8
        for (int k = 0; k < kGroup; ++k)
          sums[v] = hn::MulAdd(hn::LoadU(d, w + k * kLanes), group(channels, k), sums[v]);
      }
    }
  }
  const Vector bias = line.bias ? hn::LoadU(d, line.bias) : hn::Zero(d);
  const Vector low = hn::Set(d, line.low), high = hn::Set(d, line.high);
  T* out = line.out + t * line.out_step;
#pragma GCC unroll 8
  for (int v = 0; v < kCells; ++v, out += line.out_step) {
    Vector sum = hn::Add(sums[v], bias);
    if (line.accumulate) sum = hn::Add(Load(out), sum);
    Store(hn::Min(high, hn::Max(low, sum)), out);  // this operand order keeps NaN
  }
}

template <int kGroup, typename T>
void LineOfGroups(const Line<T>& line, const Results& rows, int64_t y, const Results& columns) {
  int64_t t = 0;
  for (; t < columns.inner_first; ++t) ConvolveCells<kGroup, 1>(line, rows, y, columns, t);
  for (; t + 8 <= columns.inner_last; t += 8) ConvolveCells<kGroup, 8>(line, rows, y, columns, t);
  if (t + 4 <= columns.inner_last) {
    ConvolveCells<kGroup, 4>(line, rows, y, columns, t);
    t += 4;
  }
  if (t + 2 <= columns.inner_last) {
    ConvolveCells<kGroup, 2>(line, rows, y, columns, t);
    t += 2;
  }
  for (; t < columns.count; ++t) ConvolveCells<kGroup, 1>(line, rows, y, columns, t);
}

template <typename T>
void LineOf(const Line<T>& line, const Results& rows, int64_t y, const Results& columns) {
  switch (line.group) {
    case 1:
      return LineOfGroups<1>(line, rows, y, columns);
    case 2:
      return LineOfGroups<2>(line, rows, y, columns);
    case 4:
      return LineOfGroups<4>(line, rows, y, columns);
    default:
      return LineOfGroups<kMostChannels>(line, rows, y, columns);
  }
}

// The products of head cells [first, last) of every row that sees the taps `rows` (kRows of them)
// with the cells under the taps `columns` (kColumns).
template <int kRows, int kColumns, typename T>
HWY_INLINE void AddTaps(const WeightGradient<T>& g, const Results& rows, const Results& columns,
                        size_t row, size_t column, int64_t top, int64_t bottom, int64_t first,
                        int64_t last) {
  if (top >= bottom || first >= last) return;
  const Tag d;
  const int64_t step = columns.source_step * g.image_steps.cell;
  Vector total[kRows][kColumns];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) total[i][j] = hn::Zero(d);
  }
  int64_t shift[kColumns];
#pragma GCC unroll 8
  for (int j = 0; j < kColumns; ++j)
    shift[j] = columns.taps[column + j].offset * g.image_steps.cell;
  for (int64_t y = top; y < bottom; ++y) {
    const T* head = g.head + y * g.head_steps.row + first * g.head_steps.cell;
    const T* image[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      image[i] = g.image + (y * rows.source_step + rows.taps[row + i].offset) * g.image_steps.row +
                 first * step;
    }
    for (int64_t x = first; x < last; ++x, head += g.head_steps.cell) {
      const Vector h = Load(head);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
        for (int j = 0; j < kColumns; ++j)
          total[i][j] = hn::MulAdd(h, Load(image[i] + shift[j]), total[i][j]);
        image[i] += step;
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) {
      float* sum =
          g.sums +
          (rows.taps[row + i].cell * g.kernel_width + columns.taps[column + j].cell) * kLanes;
      hn::StoreU(hn::Add(hn::LoadU(d, sum), total[i][j]), d, sum);
    }
  }
}

// kRows x kColumns taps: together where all are inside the image, one by one at its borders.
template <int kRows, int kColumns, typename T>
void AddWindow(const WeightGradient<T>& g, const Results& rows, const Results& columns, size_t row,
               size_t column) {
  int64_t top = 0, bottom = rows.count, first = 0, last = columns.count;
  for (int i = 0; i < kRows; ++i) {
    top = std::max(top, rows.taps[row + i].first);
    bottom = std::min(bottom, rows.taps[row + i].last);
  }
  for (int j = 0; j < kColumns; ++j) {
    first = std::max(first, columns.taps[column + j].first);
    last = std::min(last, columns.taps[column + j].last);
  }
  bottom = std::max(bottom, top), last = std::max(last, first);
  AddTaps<kRows, kColumns>(g, rows, columns, row, column, top, bottom, first, last);
  for (int i = 0; i < kRows; ++i) {
    const Tap& r = rows.taps[row + i];
    for (int j = 0; j < kColumns; ++j) {
      const Tap& c = columns.taps[column + j];
      const auto add = [&](int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
        AddTaps<1, 1>(g, rows, columns, row + i, column + j, y0, y1, x0, x1);
      };
      add(r.first, std::min(top, r.last), c.first, c.last);
      add(std::max(bottom, r.first), r.last, c.first, c.last);
      const int64_t y0 = std::max(top, r.first), y1 = std::min(bottom, r.last);
      add(y0, y1, c.first, std::min(first, c.last));
      add(y0, y1, std::max(last, c.first), c.last);
    }
  }
}

// Columns [column, column + kColumns) of every row of the window, kRows at a time.
template <int kRows, int kColumns, typename T>
void AddColumns(const WeightGradient<T>& g, const Results& rows, const Results& columns,
                size_t column) {
  size_t row = 0;
  for (; row + kRows <= rows.taps.size(); row += kRows)
    AddWindow<kRows, kColumns>(g, rows, columns, row, column);
  for (; row < rows.taps.size(); ++row) AddWindow<1, kColumns>(g, rows, columns, row, column);
}

// Tap by tap, which is enough work where every cell meets kGroup channels.
template <int kGroup, typename T>
void AddGroups(const WeightGradient<T>& g, const Results& rows, const Results& columns) {
  const Tag d;
  const GroupLanes<kGroup> group;
  const int64_t step = columns.source_step * g.image_steps.cell;
  for (const Tap& row : rows.taps) {
    for (const Tap& column : columns.taps) {
      Vector total[kGroup];
#pragma GCC unroll 8
      for (int k = 0; k < kGroup; ++k) total[k] = hn::Zero(d);
      for (int64_t y = row.first; y < row.last; ++y) {
        const T* head = g.head + y * g.head_steps.row + column.first * g.head_steps.cell;
        const T* image = g.image + (y * rows.source_step + row.offset) * g.image_steps.row +
                         column.first * step + column.offset * g.image_steps.cell;
        for (int64_t x = column.first; x < column.last;
             ++x, head += g.head_steps.cell, image += step) {
          const Vector h = Load(head), channels = Load(image);
#pragma GCC unroll 8
          for (int k = 0; k < kGroup; ++k) total[k] = hn::MulAdd(h, group(channels, k), total[k]);
        }
      }
      float* sums = g.sums + (row.cell * g.kernel_width + column.cell) * kGroup * kLanes;
#pragma GCC unroll 8
      for (int k = 0; k < kGroup; ++k, sums += kLanes)
        hn::StoreU(hn::Add(hn::LoadU(d, sums), total[k]), d, sums);
    }
  }
}

template <typename T>
void GradientOfWeights(const WeightGradient<T>& g, const Results& rows, const Results& columns) {
  if (g.group == 2) return AddGroups<2>(g, rows, columns);
  if (g.group == 4) return AddGroups<4>(g, rows, columns);
  if (g.group == kMostChannels) return AddGroups<kMostChannels>(g, rows, columns);
  constexpr size_t kMost = 7;  // columns summed at a time
  for (size_t column = 0; column < columns.taps.size(); column += kMost) {
    switch (std::min(kMost, columns.taps.size() - column)) {
      case 1:
        AddColumns<3, 1>(g, rows, columns, column);
        break;
      case 2:
        AddColumns<3, 2>(g, rows, columns, column);
        break;
      case 3:
        AddColumns<3, 3>(g, rows, columns, column);
        break;
      case 4:
        AddColumns<2, 4>(g, rows, columns, column);
        break;
      case 5:
        AddColumns<2, 5>(g, rows, columns, column);
        break;
      case 6:
        AddColumns<2, 6>(g, rows, columns, column);
        break;
      default:
        AddColumns<1, kMost>(g, rows, columns, column);
        break;
    }
  }
}

template <typename T>
void SumCells(const T* image, const Steps& steps, int64_t rows, int64_t columns, float* sums) {
  const Tag d;
  Vector total = hn::LoadU(d, sums);
  for (int64_t y = 0; y < rows; ++y) {
    const T* cell = image + y * steps.row;
    Vector even = hn::Zero(d), odd = hn::Zero(d);
    int64_t x = 0;
    for (; x + 2 <= columns; x += 2, cell += 2 * steps.cell) {
      even = hn::Add(even, Load(cell));
      odd = hn::Add(odd, Load(cell + steps.cell));
    }
    if (x < columns) even = hn::Add(even, Load(cell));
    total = hn::Add(total, hn::Add(even, odd));
  }
  hn::StoreU(total, d, sums);
}

// A table of one type's kernels: run-time selection needs names without angle brackets.
template <typename T>
constexpr Kernels<T> kKernels = {LineOf<T>, GradientOfWeights<T>, SumCells<T>};
const Kernels<float>& KernelsOfFloat() {
  return kKernels<float>;
}
const Kernels<bfloat16>& KernelsOfBfloat16() {
  return kKernels<bfloat16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::grouped
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mxtrain::grouped {
namespace {

// Taps whose source indices are inside [0, source) for some of the results.
void AddTap(Results* results, int64_t source, int64_t cell, int64_t offset) {
  const int64_t step = results->source_step;
  const int64_t first = offset < 0 ? CeilDivide(-offset, step) : 0;
  const int64_t last = offset < source ? (source - 1 - offset) / step + 1 : 0;
  const Tap tap{cell, offset, first, std::min(last, results->count)};
  if (tap.first < tap.last) results->taps.push_back(tap);
}

void FindInner(Results* results) {
  results->inner_first = 0, results->inner_last = results->count;
  for (const Tap& tap : results->taps) {
    results->inner_first = std::max(results->inner_first, tap.first);
    results->inner_last = std::min(results->inner_last, tap.last);
  }
  results->inner_last = std::max(results->inner_first, results->inner_last);
}

}  // namespace

HWY_EXPORT(LaneCount);
HWY_EXPORT(KernelsOfFloat);
HWY_EXPORT(KernelsOfBfloat16);

int64_t Width() {
  return HWY_DYNAMIC_DISPATCH(LaneCount)();
}

Results ForwardResults(const Axis& axis) {
  Results results{0, 1, axis.out, axis.stride, {}, 0, 0};
  for (int64_t k = 0; k < axis.kernel; ++k)
    AddTap(&results, axis.in, k, k * axis.dilate - axis.pad);
  FindInner(&results);
  return results;
}

std::vector<Results> GradientResults(const Axis& axis) {
  std::vector<Results> all;
  for (int64_t first = 0; first < std::min(axis.stride, axis.in); ++first) {
    Results results{first, axis.stride, CeilDivide(axis.in - first, axis.stride), 1, {}, 0, 0};
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t at = first + axis.pad - k * axis.dilate;  // of the head, times the stride
      if (at % axis.stride == 0) AddTap(&results, axis.out, k, at / axis.stride);
    }
    FindInner(&results);
    all.push_back(std::move(results));
  }
  return all;
}

template <>
const Kernels<float>& KernelsOf() {
  return HWY_DYNAMIC_DISPATCH(KernelsOfFloat)();
}
template <>
const Kernels<bfloat16>& KernelsOf() {
  return HWY_DYNAMIC_DISPATCH(KernelsOfBfloat16)();
}

}  // namespace mxtrain::grouped

#endif  // HWY_ONCE
