// SPDX-License-Identifier: Apache-2.0
// rnn_kernels.h, compiled once per instruction set; the best supported set is selected at run time.
// Products are written in vectors; the loops over cells are plain, and the compiler vectorizes them
// for each set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/rnn/rnn_kernels_simd.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "mxtrain/base/math.h"
#include "mxtrain/operators/rnn/rnn_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace mxtrain::rnn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename C>
using Tag = hn::CappedTag<C, 64 / sizeof(C)>;
template <typename C>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<C>()));

// With two vectors each as many accumulators as the registers hold beside the factors.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
constexpr int kTileVectors = 2;

// Vectors of a panel that are fetched ahead: caches do not look across pages by themselves.
constexpr int64_t kAhead = 24;

// A left factor: element (row, k) at row * row_step + k * inner_step.
template <typename C>
struct Left {
  const C* data;
  int64_t row_step, inner_step;
};

// put(row, vector, sum) for kRows rows of `a` and kVectors panels at a distance of `panel_step`.
template <int kRows, int kVectors, typename C, typename Put>
HWY_INLINE void MultiplyTile(const Left<C>& a, int64_t inner, const C* panels, int64_t panel_step,
                             const Put& put) {
  hn::Vec<Tag<C>> sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(Tag<C>());
  }
  const C* at = a.data;
  for (int64_t k = 0; k < inner; ++k, at += a.inner_step, panels += kLanes<C>) {
    hn::Vec<Tag<C>> right[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      right[v] = hn::LoadU(Tag<C>(), panels + v * panel_step);
      hwy::Prefetch(panels + v * panel_step + kAhead * kLanes<C>);
    }
    for (int r = 0; r < kRows; ++r) {
      const auto left = hn::Set(Tag<C>(), at[r * a.row_step]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) put(r, v, sum[r][v]);
  }
}

// f(std::integral_constant<int, n>) for n in [1, kMost].
template <int kMost, typename F>
HWY_INLINE void SwitchCount(int64_t n, const F& f) {
  if constexpr (kMost > 1) {
    if (n < kMost) return SwitchCount<kMost - 1>(n, f);
  }
  f(std::integral_constant<int, kMost>());
}

// The products of a tile of rows and up to kBlockVectors panels: as many as keep the loops over
// cells long and the block in the first cache.
constexpr int kBlockVectors = 8;
template <typename C>
constexpr int64_t kBlockRow = kBlockVectors* kLanes<C>;
template <typename C>
struct Block {
  alignas(64) C data[kTileRows * kBlockRow<C>];
};
template <int kVectors, typename C>
HWY_NOINLINE void MultiplyToBlock(const Left<C>& a, int64_t rows, int64_t inner, const C* panels,
                                  int64_t panel_step, C* to) {
  SwitchCount<kTileRows>(rows, [&](auto count) HWY_ATTR {
    MultiplyTile<count(), kVectors>(
        a, inner, panels, panel_step, [to](int r, int v, auto sum) HWY_ATTR {
          hn::StoreU(sum, Tag<C>(), to + r * kBlockRow<C> + v * kLanes<C>);
        });
  });
}
template <typename C>
HWY_INLINE void MultiplyToBlock(const Left<C>& a, int64_t rows, int64_t inner, const C* panels,
                                int64_t panel_step, int64_t vectors, C* to) {
  int64_t v = 0;
  for (; v + 2 <= vectors; v += 2) {
    MultiplyToBlock<2>(a, rows, inner, panels + v * panel_step, panel_step, to + v * kLanes<C>);
  }
  if (v < vectors)
    MultiplyToBlock<1>(a, rows, inner, panels + v * panel_step, panel_step, to + v * kLanes<C>);
}
template <typename C>
void ZeroBlock(int64_t rows, C* to) {
  std::fill_n(to, rows * kBlockRow<C>, C(0));
}

// f(rows, vectors) for the blocks of a step: tiles of about equally many rows.
template <typename F>
HWY_INLINE void ForTiles(Range rows, Range units, const F& f) {
  const int64_t tiles = CeilDivide(rows.size(), static_cast<int64_t>(kTileRows));
  for (int64_t v = units.begin; v < units.end; v += kBlockVectors) {
    const Range vectors{v, std::min<int64_t>(v + kBlockVectors, units.end)};
    for (int64_t t = 0; t < tiles; ++t) {
      f(Range{rows.begin + rows.size() * t / tiles, rows.begin + rows.size() * (t + 1) / tiles},
        vectors);
    }
  }
}

// The units in `vectors` of `all`.
template <typename C>
HWY_INLINE Range UnitsIn(Range vectors, int64_t all) {
  return {vectors.begin * kLanes<C>, std::min(all, vectors.end * kLanes<C>)};
}

template <int kMode, typename C>
void ForwardTiles(const Direction<C>& d, int64_t step, const C* panels, Range rows, Range units) {
  constexpr int64_t kGates = GatesOf(kMode);
  constexpr int64_t kGateStep = kTileRows * kBlockRow<C>;
  const int64_t inner = d.g.output, panel = inner * kLanes<C>;
  Block<C> block[kGates];
  ForTiles(rows, units, [&](Range tile, Range vectors) HWY_ATTR {
    const Left<C> h{d.H(d.From(step), tile.begin), d.h_row, 1};
    for (int64_t k = 0; k < kGates; ++k) {
      MultiplyToBlock(h, tile.size(), inner, panels + (vectors.begin * kGates + k) * panel,
                      kGates * panel, vectors.size(), block[k].data);
    }
    const Range in = UnitsIn<C>(vectors, d.g.hidden);
    for (int64_t n = tile.begin; n < tile.end; ++n) {
      const ForwardRow<C> row(d, step, n, block[0].data + (n - tile.begin) * kBlockRow<C>,
                              kGateStep);
      if (row.counts) {
#pragma GCC ivdep
        for (int64_t u = in.begin; u < in.end; ++u) row.template Step<kMode>(u, u - in.begin);
      } else {
        for (int64_t u = in.begin; u < in.end; ++u) row.template Skip<kMode>(u, d.full != nullptr);
      }
    }
  });
}

template <typename C>
void Forward(const Direction<C>& d, int64_t step, const C* panels, Range rows, Range units) {
  switch (d.g.mode) {
    case kRelu:
      return ForwardTiles<kRelu>(d, step, panels, rows, units);
    case kTanh:
      return ForwardTiles<kTanh>(d, step, panels, rows, units);
    case kLstm:
      return ForwardTiles<kLstm>(d, step, panels, rows, units);
    default:
      return ForwardTiles<kGru>(d, step, panels, rows, units);
  }
}

template <typename C>
void Project(const Direction<C>& d, int64_t step, const C* panels, Range rows, Range units) {
  const int64_t inner = d.g.hidden, panel = inner * kLanes<C>;
  Block<C> block;
  ForTiles(rows, units, [&](Range tile, Range vectors) HWY_ATTR {
    MultiplyToBlock(Left<C>{d.full + d.UnitsBefore(step, tile.begin), inner, 1}, tile.size(), inner,
                    panels + vectors.begin * panel, panel, vectors.size(), block.data);
    const Range in = UnitsIn<C>(vectors, d.g.output);
    for (int64_t n = tile.begin; n < tile.end; ++n) {
      const C* const from = d.lengths.Counts(step, n) ? block.data + (n - tile.begin) * kBlockRow<C>
                                                      : d.H(d.From(step), n) + in.begin;
      std::copy_n(from, in.size(), d.H(d.To(step), n) + in.begin);
    }
  });
}

// What the gates of step `later` pass on, of the units in `vectors`.
template <typename C>
HWY_INLINE void PassedOn(const Direction<C>& d, const DirectionGradient<C>& to, int64_t later,
                         const C* panels, Range tile, Range vectors, C* block) {
  if (later < 0) return ZeroBlock(tile.size(), block);
  const int64_t inner = d.g.gate_columns(), panel = inner * kLanes<C>;
  MultiplyToBlock(
      Left<C>{to.recurrent + (later * d.g.batch + tile.begin) * d.gate_row, d.gate_row, 1},
      tile.size(), inner, panels + vectors.begin * panel, panel, vectors.size(), block);
}

template <int kMode, bool kProjects, typename C>
HWY_INLINE void BackwardCells(const Direction<C>& d, const DirectionGradient<C>& to, int64_t step,
                              Range tile, Range vectors, const C* block) {
  const Range in = UnitsIn<C>(vectors, d.g.hidden);
  for (int64_t n = tile.begin; n < tile.end; ++n) {
    const BackwardRow<C> row(d, to, step, n, block + (n - tile.begin) * kBlockRow<C>);
    if (row.counts) {
#pragma GCC ivdep
      for (int64_t u = in.begin; u < in.end; ++u)
        row.template Step<kMode, kProjects>(u, u - in.begin);
    } else {
      for (int64_t u = in.begin; u < in.end; ++u)
        row.template Skip<kMode, kProjects>(u, u - in.begin);
    }
  }
}

template <int kMode, typename C>
void BackwardTiles(const Direction<C>& d, const DirectionGradient<C>& to, int64_t step,
                   int64_t later, const C* panels, Range rows, Range units) {
  Block<C> block;
  ForTiles(rows, units, [&](Range tile, Range vectors) HWY_ATTR {
    PassedOn(d, to, later, panels, tile, vectors, block.data);
    BackwardCells<kMode, false>(d, to, step, tile, vectors, block.data);
  });
}

template <typename C>
void Backward(const Direction<C>& d, const DirectionGradient<C>& to, int64_t step, int64_t later,
              const C* panels, Range rows, Range units) {
  switch (d.g.mode) {
    case kRelu:
      return BackwardTiles<kRelu>(d, to, step, later, panels, rows, units);
    case kTanh:
      return BackwardTiles<kTanh>(d, to, step, later, panels, rows, units);
    case kLstm:
      return BackwardTiles<kLstm>(d, to, step, later, panels, rows, units);
    default:
      return BackwardTiles<kGru>(d, to, step, later, panels, rows, units);
  }
}

template <typename C>
void AddTotal(const Direction<C>& d, const DirectionGradient<C>& to, int64_t step, int64_t later,
              const C* panels, Range rows, Range units) {
  Block<C> block;
  ForTiles(rows, units, [&](Range tile, Range vectors) HWY_ATTR {
    PassedOn(d, to, later, panels, tile, vectors, block.data);
    const Range in = UnitsIn<C>(vectors, d.g.output);
    for (int64_t n = tile.begin; n < tile.end; ++n) {
      const bool counts = d.lengths.Counts(step, n);
      const int64_t row = step * d.g.batch + n;
      const C* const product = block.data + (n - tile.begin) * kBlockRow<C>;
      for (int64_t u = in.begin; u < in.end; ++u) {
        C& carry = to.h[n * d.g.output + u];
        const C sum = carry + product[u - in.begin];
        to.total[row * d.g.output + u] = counts ? sum + to.head[row * to.head_row + u] : C(0);
        carry = counts ? C(0) : sum;
      }
    }
  });
}

template <typename C>
void BackwardProjected(const Direction<C>& d, const DirectionGradient<C>& to, int64_t step,
                       const C* panels, Range rows, Range units) {
  const int64_t inner = d.g.output, panel = inner * kLanes<C>;
  Block<C> block;
  ForTiles(rows, units, [&](Range tile, Range vectors) HWY_ATTR {
    MultiplyToBlock(Left<C>{to.total + (step * d.g.batch + tile.begin) * inner, inner, 1},
                    tile.size(), inner, panels + vectors.begin * panel, panel, vectors.size(),
                    block.data);
    BackwardCells<kLstm, true>(d, to, step, tile, vectors, block.data);
  });
}

template <typename C>
void Finish(const Direction<C>& d, const DirectionGradient<C>& to, const C* panels, Range rows,
            Range units) {
  Block<C> block;
  ForTiles(rows, units, [&](Range tile, Range vectors) HWY_ATTR {
    PassedOn(d, to, d.StepAt(0), panels, tile, vectors, block.data);
    const Range in = UnitsIn<C>(vectors, d.g.output);
    for (int64_t n = tile.begin; n < tile.end; ++n) {
      const C* const product = block.data + (n - tile.begin) * kBlockRow<C>;
      C* const carry = to.h + n * d.g.output;
      for (int64_t u = in.begin; u < in.end; ++u) carry[u] += product[u - in.begin];
    }
  });
}

// --- products of whole matrices ---

// to[r, c], rows at a distance of kPadded, = from[r * row_step + c * column_step]; zeros in the
// columns from `columns` on.
template <int64_t kPadded, typename C>
void CopyMatrix(const C* from, int64_t row_step, int64_t column_step, int64_t rows, int64_t columns,
                C* to) {
  if (column_step == 1 && columns == kPadded) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < kPadded; ++c) to[r * kPadded + c] = from[r * row_step + c];
    }
    return;
  }
  if (column_step == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < kPadded; ++c)
        to[r * kPadded + c] = c < columns ? from[r * row_step + c] : C(0);
    }
    return;
  }
  // Rows of a tile are written whole; the lines of the columns that they come from stay in the
  // cache for the next ones.
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < kPadded; ++c)
      to[r * kPadded + c] = c < columns ? from[r * row_step + c * column_step] : C(0);
  }
}

template <typename C>
void PackPanels(const C* b, const MatrixView& view, Range vectors, C* to) {
  for (int64_t v = vectors.begin; v < vectors.end; ++v, to += view.rows * kLanes<C>) {
    const int64_t first = v * kLanes<C>, columns = std::min(kLanes<C>, view.columns - first);
    CopyMatrix<kLanes<C>>(b + first * view.column_stride, view.row_stride, view.column_stride,
                          view.rows, columns, to);
  }
}

template <typename C>
void PackRows(const C* a, const MatrixView& view, C* to) {
  for (int64_t first = 0; first < view.rows; first += kTileRows) {
    const int64_t rows = std::min<int64_t>(kTileRows, view.rows - first);
    CopyMatrix<kTileRows>(a + first * view.row_stride, view.column_stride, view.row_stride,
                          view.columns, rows, to);
    to += kTileRows * view.columns;
  }
}

// A tile of rows times a pair of panels.
template <int kVectors, typename C>
HWY_NOINLINE void MultiplyRows(const PackedProduct<C>& p, int64_t row, int64_t rows, int64_t column,
                               const C* panels) {
  const auto put = [&](int r, int v, auto sum) HWY_ATTR {
    C* const to = p.c + (row + r) * p.c_row + column + v * kLanes<C>;
    const int64_t left = p.columns - column - v * kLanes<C>;
    if (left >= kLanes<C>) {
      hn::StoreU(p.add ? hn::Add(sum, hn::LoadU(Tag<C>(), to)) : sum, Tag<C>(), to);
      return;
    }
    alignas(64) C part[kLanes<C>];
    hn::Store(sum, Tag<C>(), part);
    for (int64_t k = 0; k < left; ++k) to[k] = p.add ? to[k] + part[k] : part[k];
  };
  const int64_t step = p.inner * kLanes<C>;
  SwitchCount<kTileRows>(rows, [&](auto count) HWY_ATTR {
    if (p.a_row == 0) {
      const Left<C> a{p.a + row * p.inner, 1, kTileRows};
      MultiplyTile<count(), kVectors>(a, p.inner, panels, step, put);
    } else {
      const Left<C> a{p.a + row * p.a_row, p.a_row, 1};
      MultiplyTile<count(), kVectors>(a, p.inner, panels, step, put);
    }
  });
}

// Panels are the outer loop: a pair stays in the caches while all rows pass.
template <typename C>
void Multiply(const PackedProduct<C>& p) {
  const int64_t vectors = CeilDivide(p.columns, kLanes<C>);
  for (int64_t v = 0; v < vectors; v += kTileVectors) {
    const C* const panels = p.b + v * p.inner * kLanes<C>;
    for (int64_t row = 0; row < p.rows; row += kTileRows) {
      const int64_t rows = std::min<int64_t>(kTileRows, p.rows - row);
      if (v + 1 < vectors) {
        MultiplyRows<2>(p, row, rows, v * kLanes<C>, panels);
      } else {
        MultiplyRows<1>(p, row, rows, v * kLanes<C>, panels);
      }
    }
  }
}

template <typename C>
constexpr Kernels<C> kKernels = {
    kLanes<C>,  kTileRows,   PackPanels<C>, PackRows<C>,          Multiply<C>, Forward<C>,
    Project<C>, Backward<C>, AddTotal<C>,   BackwardProjected<C>, Finish<C>};

const Kernels<float>& FloatKernels() {
  return kKernels<float>;
}
const Kernels<double>& DoubleKernels() {
  return kKernels<double>;
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::rnn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mxtrain::rnn {
HWY_EXPORT(FloatKernels);
HWY_EXPORT(DoubleKernels);

template <>
const Kernels<float>& KernelsOf<float>() {
  return HWY_DYNAMIC_DISPATCH(FloatKernels)();
}
template <>
const Kernels<double>& KernelsOf<double>() {
  return HWY_DYNAMIC_DISPATCH(DoubleKernels)();
}

}  // namespace mxtrain::rnn

#endif  // HWY_ONCE
