// SPDX-License-Identifier: Apache-2.0
// Moves on the CPU: runs of contiguous elements, transpositions in blocks of cache lines, sums of
// many elements together.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "mxtrain/operator/view_moves.h"

namespace mxtrain {
namespace {

using Axis = MergedMove::Axis;

// Offsets and strides in bytes instead of elements.
MergedMove InBytes(MergedMove move, int64_t width) {
  move.from *= width;
  move.to *= width;
  for (int i = 0; i < move.kept + move.summed; ++i) {
    move.axes[i].from *= width;
    move.axes[i].to *= width;
  }
  return move;
}

// The offsets of consecutive indices of some axes, the last one fastest, without divisions.
class Odometer {
 public:
  Odometer(const Axis* axes, int ndim, int64_t first) : axes_(axes), ndim_(ndim) {
    for (int k = ndim - 1; k >= 0; --k) {
      index_[k] = first % axes[k].dim;
      first /= axes[k].dim;
      from += index_[k] * axes[k].from;
      to += index_[k] * axes[k].to;
    }
  }
  [[gnu::always_inline]] void Next() {
    for (int k = ndim_ - 1; k >= 0; --k) {
      const Axis& axis = axes_[k];
      from += axis.from;
      to += axis.to;
      if (++index_[k] < axis.dim) return;
      from -= axis.dim * axis.from;
      to -= axis.dim * axis.to;
      index_[k] = 0;
    }
  }
  int64_t index(int axis) const { return index_[axis]; }

  int64_t from = 0, to = 0;

 private:
  const Axis* axes_;
  int ndim_;
  int64_t index_[StridedView::kMaxAxes + 1] = {};
};

// The runs along the last kept axis that elements [begin, end) consist of; begin < end.
//
//   for (Runs run(move, begin, end); run.Next();) use(run.from, run.to, run.count);
class Runs {
 public:
  [[gnu::always_inline]] Runs(const MergedMove& move, int64_t begin, int64_t end,
                              int64_t longest = TShape::kMaxSize)
      : row_(move.axes[move.kept - 1]),
        walk_(move.axes, move.kept - 1, begin / row_.dim),
        column_(begin % row_.dim),
        left_(end - begin),
        longest_(longest) {}

  [[gnu::always_inline]] bool Next() {
    left_ -= count;
    if (left_ == 0) return false;
    column_ += count;
    if (column_ == row_.dim) {
      column_ = 0;
      walk_.Next();
    }
    count = std::min(std::min(row_.dim - column_, left_), longest_);
    from = walk_.from + column_ * row_.from;
    to = walk_.to + column_ * row_.to;
    return true;
  }

  int64_t from = 0, to = 0, count = 0;

 private:
  const Axis row_;
  Odometer walk_;
  int64_t column_, left_;
  const int64_t longest_;
};

// How an element is written: copied bytes of any type and alignment, or a value that is added.
template <int kBytes>
struct CopyBytes {
  static constexpr int64_t kWidth = kBytes;
  static constexpr bool kCopies = true;
  [[gnu::always_inline]] static void Put(char* to, const char* from) {
    std::memcpy(to, from, kBytes);
  }
};
template <typename T>
struct AddValue {
  static constexpr int64_t kWidth = sizeof(T);
  static constexpr bool kCopies = false;
  [[gnu::always_inline]] static void Put(char* to, const char* from) {
    using A = AccumulatorOf<T>;
    T* y = reinterpret_cast<T*>(to);
    *y = ElementOf<T>(Plus(static_cast<A>(*y), static_cast<A>(*reinterpret_cast<const T*>(from))));
  }
};

constexpr int64_t kLongRun = 64;  // bytes from which on a call of memcpy pays

// Steps in bytes.
template <typename P>
[[gnu::always_inline]] inline void MoveRun(const char* from, int64_t from_step, char* to,
                                           int64_t to_step, int64_t count) {
  constexpr int64_t kWidth = P::kWidth;
  if (to_step == kWidth && from_step == kWidth) {
    if constexpr (P::kCopies) {
      if (count * kWidth >= kLongRun) {
        std::memcpy(to, from, static_cast<size_t>(count * kWidth));
        return;
      }
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) P::Put(to + i * kWidth, from + i * kWidth);
  } else if (to_step == kWidth && from_step == -kWidth) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) P::Put(to + i * kWidth, from - i * kWidth);
  } else if (to_step == kWidth && from_step == 2 * kWidth) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) P::Put(to + i * kWidth, from + 2 * i * kWidth);
  } else if (to_step == kWidth && from_step == 0) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) P::Put(to + i * kWidth, from);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) P::Put(to + i * to_step, from + i * from_step);
  }
}

template <typename P>
MXTRAIN_SIMD void MoveRuns(const MergedMove& move, int64_t begin, int64_t end, const char* from,
                           char* to) {
  const Axis row = move.axes[move.kept - 1];
  for (Runs run(move, begin, end); run.Next();)
    MoveRun<P>(from + run.from, row.from, to + run.to, row.to, run.count);
}

// A transposition goes in blocks whose rows and columns are whole cache lines, and these in tiles
// that stay within few memory pages.
template <int64_t kWidth>
struct TileSize {
  static constexpr int64_t kEdge = kWidth < 16 ? 64 / kWidth : 4;  // elements of a block's side
  static constexpr int64_t kRows = 4 * kEdge, kColumns = 16 * kEdge;
};

// to[row][column] = from[column][row], with elements contiguous in the second index; strides in
// bytes.
template <typename P>
[[gnu::always_inline]] inline void MoveBlock(const char* from, int64_t from_stride, char* to,
                                             int64_t to_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kWidth = P::kWidth, kEdge = TileSize<kWidth>::kEdge;
  if (rows < kEdge || columns < kEdge) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column)
        P::Put(to + row * to_stride + column * kWidth, from + column * from_stride + row * kWidth);
    }
    return;
  }
  // Every line of the source is read once: lines at strides of a power of two would displace each
  // other from the cache.
  alignas(64) char block[kEdge * kEdge * kWidth];
  for (int64_t column = 0; column < kEdge; ++column)
    std::memcpy(block + column * kEdge * kWidth, from + column * from_stride, kEdge * kWidth);
  for (int64_t row = 0; row < kEdge; ++row) {
#pragma GCC ivdep
    for (int64_t column = 0; column < kEdge; ++column)
      P::Put(to + row * to_stride + column * kWidth, block + (column * kEdge + row) * kWidth);
  }
}

// Tiles [begin, end) of TilesOf. `across` is the source's contiguous axis, `along` the target's.
template <typename P>
MXTRAIN_SIMD void MoveTiles(const MergedMove& tiles, Axis across, Axis along, int64_t begin,
                            int64_t end, const char* from, char* to) {
  using Size = TileSize<P::kWidth>;
  Odometer walk(tiles.axes, tiles.kept, begin);
  for (int64_t tile = begin; tile < end; ++tile, walk.Next()) {
    const int64_t rows =
                      std::min(across.dim - walk.index(tiles.kept - 2) * Size::kRows, Size::kRows),
                  columns = std::min(along.dim - walk.index(tiles.kept - 1) * Size::kColumns,
                                     Size::kColumns);
    for (int64_t column = 0; column < columns; column += Size::kEdge) {
      for (int64_t row = 0; row < rows; row += Size::kEdge) {
        MoveBlock<P>(from + walk.from + row * across.from + column * along.from, along.from,
                     to + walk.to + row * across.to + column * along.to, across.to,
                     std::min(rows - row, Size::kEdge), std::min(columns - column, Size::kEdge));
      }
    }
  }
}

// `move` in bytes; its offsets are in the pointers already.
template <typename P>
void MoveElements(const MergedMove& move, const char* from, char* to) {
  using Size = TileSize<P::kWidth>;
  const int axis = TransposedAxis(move, P::kWidth);
  if (axis < 0) {
    ParallelFor(move.kept_size, kParallelGrain,
                [&](int64_t begin, int64_t end) { MoveRuns<P>(move, begin, end, from, to); });
    return;
  }
  const Axis across = move.axes[axis], along = move.axes[move.kept - 1];
  const MergedMove tiles = TilesOf(move, axis, Size::kRows, Size::kColumns);
  const int64_t elements = std::min(across.dim, Size::kRows) * std::min(along.dim, Size::kColumns);
  ParallelFor(tiles.kept_size, std::max<int64_t>(1, kParallelGrain / elements),
              [&](int64_t begin, int64_t end) {
                MoveTiles<P>(tiles, across, along, begin, end, from, to);
              });
}

void Copy(const MergedMove& given, int64_t width, const char* from, char* to) {
  MergedMove move = InBytes(given, width);
  // A short run that both arrays have in one piece is moved as one wide element.
  const Axis run = move.axes[move.kept - 1];
  const int64_t bytes = run.dim * width;
  if (run.from == width && run.to == width && bytes <= 16 && (bytes & (bytes - 1)) == 0) {
    width = bytes;
    move.kept_size /= run.dim;
    if (move.kept > 1) {
      --move.kept;
    } else {
      move.axes[0] = {1, width, width};
    }
  }
  from += move.from;
  to += move.to;
  switch (width) {
    case 1:
      return MoveElements<CopyBytes<1>>(move, from, to);
    case 2:
      return MoveElements<CopyBytes<2>>(move, from, to);
    case 4:
      return MoveElements<CopyBytes<4>>(move, from, to);
    case 8:
      return MoveElements<CopyBytes<8>>(move, from, to);
    default:
      return MoveElements<CopyBytes<16>>(move, from, to);
  }
}

constexpr int64_t kSumBlock = 256;  // sums that are accumulated together

// The sum of elements `step` apart; of floating types in eight interleaved parts. (Integers may be
// summed in any order, which the compiler finds itself; GCC 12 miscompiles the parts of uint8.)
template <typename T>
[[gnu::always_inline]] inline AccumulatorOf<T> SumOf(const T* x, int64_t step, int64_t count) {
  using A = AccumulatorOf<T>;
  constexpr int64_t kParts = 8;
  A sum = 0;
  int64_t i = 0;
  if (std::is_floating_point_v<A> && count >= kParts) {
    A part[kParts] = {};
    for (; i + kParts <= count; i += kParts) {
      for (int64_t k = 0; k < kParts; ++k)
        part[k] = Plus(part[k], static_cast<A>(x[(i + k) * step]));
    }
    for (const A one : part) sum = Plus(sum, one);
  }
  for (; i < count; ++i) sum = Plus(sum, static_cast<A>(x[i * step]));
  return sum;
}

// sums[i] = the sum over the summed axes for element i of a part of the row, which begins at x.
template <typename T>
[[gnu::always_inline]] inline void SumTermsOf(const MergedMove& move, const T* x, int64_t count,
                                              AccumulatorOf<T>* sums) {
  using A = AccumulatorOf<T>;
  std::fill_n(sums, count, A(0));
  if (move.summed_size == 0) return;
  const Axis row = move.axes[move.kept - 1];
  const Axis* summed = move.axes + move.kept;
  // The choice depends on the move alone, as the order of summation must.
  constexpr int64_t kShortRow = 8;
  if (move.summed > 0 &&
      (row.dim < kShortRow || std::abs(summed[move.summed - 1].from) < std::abs(row.from))) {
    // One sum after the other: its terms are close together.
    const Axis run = summed[move.summed - 1];
    const int64_t runs = move.summed_size / run.dim;
    for (int64_t i = 0; i < count; ++i) {
      Odometer walk(summed, move.summed - 1, 0);
      for (int64_t k = 0; k < runs; ++k, walk.Next())
        sums[i] = Plus(sums[i], SumOf(x + i * row.from + walk.from, run.from, run.dim));
    }
    return;
  }
  // Term after term of all sums.
  Odometer walk(summed, move.summed, 0);
  for (int64_t k = 0; k < move.summed_size; ++k, walk.Next()) {
    const T* term = x + walk.from;
    if (row.from == 1) {
      for (int64_t i = 0; i < count; ++i) sums[i] = Plus(sums[i], static_cast<A>(term[i]));
    } else {
      for (int64_t i = 0; i < count; ++i)
        sums[i] = Plus(sums[i], static_cast<A>(term[i * row.from]));
    }
  }
}

template <typename T, typename To>
MXTRAIN_SIMD void SumRuns(const MergedMove& move, int64_t begin, int64_t end, const T* from, To* to,
                          bool add) {
  using A = AccumulatorOf<T>;
  const Axis row = move.axes[move.kept - 1];
  A sums[kSumBlock];
  for (Runs run(move, begin, end, kSumBlock); run.Next();) {
    SumTermsOf(move, from + run.from, run.count, sums);
    To* y = to + run.to;
    for (int64_t i = 0; i < run.count; ++i) {
      const A old = add ? static_cast<A>(y[i * row.to]) : A(0);
      y[i * row.to] = ElementOf<To>(add ? Plus(old, sums[i]) : sums[i]);
    }
  }
}

void Sum(const MergedMove& move, const TBlob& from, const TBlob& to, bool add) {
  SwitchSum(from.type, to.type, [&](auto from_tag, auto to_tag) {
    using T = typename decltype(from_tag)::type;
    using To = typename decltype(to_tag)::type;
    const T* x = from.dptr<T>() + move.from;
    To* y = to.dptr<To>() + move.to;
    const int64_t grain =
        std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, move.summed_size));
    ParallelFor(move.kept_size, grain,
                [&](int64_t begin, int64_t end) { SumRuns<T, To>(move, begin, end, x, y, add); });
  });
}

template <typename T>
MXTRAIN_SIMD void FillRuns(const MergedMove& move, int64_t begin, int64_t end,
                           AccumulatorOf<T> value, T* to, bool add) {
  using A = AccumulatorOf<T>;
  const int64_t step = move.axes[move.kept - 1].to;
  const T element = ElementOf<T>(value);
  for (Runs run(move, begin, end); run.Next();) {
    T* y = to + run.to;
    if (add) {
      for (int64_t i = 0; i < run.count; ++i)
        y[i * step] = ElementOf<T>(Plus(static_cast<A>(y[i * step]), value));
    } else if (step == 1) {
      std::fill_n(y, run.count, element);
    } else {
      for (int64_t i = 0; i < run.count; ++i) y[i * step] = element;
    }
  }
}

}  // namespace

void RunMove(const OnCpu&, const MergedMove& move, const TBlob& from, const TBlob& to, bool add) {
  if (move.kept_size == 0) return;
  if (move.summed > 0 || from.type != to.type) return Sum(move, from, to, add);
  if (!add) return Copy(move, SizeOf(to.type), from.dptr<char>(), to.dptr<char>());
  SwitchType(to.type, "a copy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MergedMove bytes = InBytes(move, static_cast<int64_t>(sizeof(T)));
    MoveElements<AddValue<T>>(bytes, from.dptr<char>() + bytes.from, to.dptr<char>() + bytes.to);
  });
}

void RunFill(const OnCpu&, const MergedMove& move, double value, const TBlob& to, bool add) {
  if (move.kept_size == 0) return;
  SwitchType(to.type, "a constant", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* first = to.dptr<T>() + move.to;
    ParallelFor(move.kept_size, kParallelGrain, [&](int64_t begin, int64_t end) {
      FillRuns<T>(move, begin, end, ConstantOf<T>(value), first, add);
    });
  });
}

}  // namespace mxtrain
