// SPDX-License-Identifier: Apache-2.0
#pragma once
// The work of operators that only move elements, as a list of moves. A move takes the elements of a
// view of an input, in order, to those of a view of an output. Stride 0 in the input's view repeats
// elements. The gradient runs the same moves from outputs to inputs; what was repeated is summed.
// view_operator.h makes operators of such lists.
#include <vector>

#include "mxtrain/operator/strided_view.h"
#include "mxtrain/operator/wrapping_int.h"

namespace mxtrain {

struct Move {
  static constexpr int kNone = -1;
  // Without an input the output's elements become a constant. Without an output nobody reads the
  // input's elements: their gradient is 0.
  int input = kNone, output = kNone;
  // Over the stored elements; equal lengths. A missing array's view is that of the other array.
  StridedView from, to;
};

struct MoveList {
  // Together they write every element of every output once. What they do not read of an input need
  // not be listed; if it is (Leave), the gradient is not filled with zeros beforehand.
  std::vector<Move> moves;
  double fill = 0;  // the constant
  // Some element of an input is read by several moves. One that reads the whole input is the first.
  bool overlap = false;

  void Add(int input, const StridedView& from, int output, const StridedView& to) {
    moves.push_back({input, output, from, to});
  }
  void Fill(int output, const StridedView& to) { moves.push_back({Move::kNone, output, to, to}); }
  void Leave(int input, const StridedView& from) {
    moves.push_back({input, Move::kNone, from, from});
  }
};

// Two views as the loops walk them together: without axes of length one, neighbouring axes merged
// where both views allow it. The target has positive strides along the kept axes, which are in
// falling order of these, and stride 0 along the summed axes: an element of the target is the sum
// over the summed axes. Trivially copyable: an argument of GPU kernels.
struct MergedMove {
  struct Axis {
    int64_t dim = 1, from = 0, to = 0;  // length and the strides of both views
  };
  struct Offsets {
    int64_t from = 0, to = 0;
  };

  int64_t from = 0, to = 0;  // offsets of the first elements
  int kept = 0, summed = 0;  // at least one kept axis
  int64_t kept_size = 1, summed_size = 1;
  Axis axes[StridedView::kMaxAxes + 1];  // kept, then summed

  // Where element i < kept_size of the target comes from (its first term) and goes to.
  MXTRAIN_HD Offsets Kept(int64_t i) const {
    const Offsets at = Walk(0, kept, kept_size, i);
    return {from + at.from, to + at.to};
  }
  // What term k < summed_size adds to the source's offset.
  MXTRAIN_HD int64_t Term(int64_t k) const {
    return Walk(kept, kept + summed, summed_size, k).from;
  }

 private:
  // Divisions of 32 bits are several times faster than those of 64.
  MXTRAIN_HD Offsets Walk(int first, int last, int64_t size, int64_t i) const {
    if (size <= UINT32_MAX) return WalkOf<uint32_t>(first, last, static_cast<uint32_t>(i));
    return WalkOf<int64_t>(first, last, i);
  }
  template <typename Index>
  MXTRAIN_HD Offsets WalkOf(int first, int last, Index i) const {
    Offsets at;
    for (int k = last - 1; k >= first; --k) {
      Index rest = 0;
      if (k > first) rest = i / static_cast<Index>(axes[k].dim);
      const auto step = static_cast<int64_t>(i - rest * static_cast<Index>(axes[k].dim));
      at.from += step * axes[k].from;
      at.to += step * axes[k].to;
      i = rest;
    }
    return at;
  }
};

MXTRAIN_API MergedMove Merge(const StridedView& from, const StridedView& to);

// The kept axis along which the source is contiguous (elements `unit` apart) while the target is
// along the last one: a transposition, best done in tiles. -1 if there is none.
MXTRAIN_API int TransposedAxis(const MergedMove& move, int64_t unit);
// The tiles of such a move, of up to `rows` indices along `axis` and `columns` along the last axis.
// Its last two axes are those of the tiles; the axes before are the move's others.
MXTRAIN_API MergedMove TilesOf(const MergedMove& move, int axis, int64_t rows, int64_t columns);

// to = the moved (and summed) elements of `from`, or += them if `add`. Sums are accumulated in
// AccumulatorOf the type of `from`, in an order that depends only on the move. The arrays have one
// type; or `from` has a 16-bit floating type and `to` is float32.
MXTRAIN_API void RunMove(const OnCpu& device, const MergedMove& move, const TBlob& from,
                         const TBlob& to, bool add);
// The target's elements = ConstantOf value, or += it.
MXTRAIN_API void RunFill(const OnCpu& device, const MergedMove& move, double value, const TBlob& to,
                         bool add);

// Bytes that a copy of elements of `size` bytes can take at once: a power of two up to 16, or the
// size of an element. Its rows, if contiguous in both arrays, are whole words, at aligned places.
MXTRAIN_API int64_t WordOf(const MergedMove& move, int64_t size, const void* from, const void* to);
// The same copy of words of `count` elements, as WordOf allows.
MXTRAIN_API MergedMove InWords(const MergedMove& move, int64_t count);

// A constant as elements of T are computed; out of range of an integer it saturates, NaN is 0.
template <typename T>
AccumulatorOf<T> ConstantOf(double value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(WrappingInt(value));
  } else {
    return static_cast<AccumulatorOf<T>>(value);
  }
}

// f(tag of the source's type, tag of the target's type) for the types of RunMove.
template <typename F>
void SwitchSum(DType from, DType to, F&& f) {
  SwitchType(from, "a sum", [&](auto tag) {
    if constexpr (sizeof(typename decltype(tag)::type) == 2) {
      if (to == DType::kFloat32) return f(tag, TypeTag<float>{});
    }
    MXTRAIN_ASSERT(from == to);
    f(tag, tag);
  });
}

}  // namespace mxtrain
