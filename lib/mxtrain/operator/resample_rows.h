// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resampling on the CPU (resample.h): taps as tables, and vector loops over the rows of planes
// [in, width, inner] that make rows of [out, width', inner].
//
// The axis that becomes longer is treated last, since the columns are the expensive ones: either
// every row of the input is resampled once and kept as long as rows of the output need it, or rows
// are summed first and their sum is resampled.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "mxtrain/base/math.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/operator/kernel.h"

namespace mxtrain {

// The taps of an axis as arrays. Lengths fit into int32_t.
struct TapTable {
  template <typename A>
  struct Weights {
    std::vector<A> by_output;  // [out, most]
    std::vector<A> by_tap;     // [gathered, out]
  };
  enum class Pattern { kAny, kRepeatTwice, kSumPairs };

  int64_t in = 0, out = 0;
  int64_t most = 1;  // taps of an output
  // `most` rounded up to a number of taps that GatherTaps is made for; 0 if there are too many.
  int64_t gathered = 1;
  Pattern pattern = Pattern::kAny;
  std::vector<int32_t> first, count;  // [out]; first = 0 if there are none
  Weights<float> singles;
  Weights<double> doubles;

  TapTable() = default;
  template <typename Taps>
  explicit TapTable(const Taps& taps) : in(taps.in), out(taps.out) {
    for (int64_t o = 0; o < out; ++o) {
      const int64_t taken = taps.Last(o) - taps.First(o);
      first.push_back(static_cast<int32_t>(taken > 0 ? taps.First(o) : 0));
      count.push_back(static_cast<int32_t>(taken));
      most = std::max(most, taken);
    }
    gathered = most == 1 ? 1 : most == 2 ? 2 : most <= 4 ? 4 : most <= 8 ? 8 : 0;
    Fill(taps, &singles);
    Fill(taps, &doubles);
    FindPattern();
  }

  template <typename A>
  const Weights<A>& weights() const {
    if constexpr (std::is_same_v<A, double>) {
      return doubles;
    } else {
      return singles;
    }
  }

 private:
  template <typename Taps, typename A>
  void Fill(const Taps& taps, Weights<A>* to) {
    to->by_output.resize(static_cast<size_t>(out * most));
    to->by_tap.resize(static_cast<size_t>(out * gathered));
    for (int64_t o = 0; o < out; ++o) {
      const auto weight = taps.template Weights<double>(o);
      for (int64_t k = 0; k < taps.Last(o) - taps.First(o); ++k) {
        const A value = static_cast<A>(weight(taps.First(o) + k));
        to->by_output[static_cast<size_t>(o * most + k)] = value;
        if (gathered > 0) to->by_tap[static_cast<size_t>(k * out + o)] = value;
      }
    }
  }
  void FindPattern() {
    const bool twice = out == 2 * in && most == 1, pairs = in == 2 * out && most == 2;
    if (!twice && !pairs) return;
    for (size_t o = 0; o < first.size(); ++o) {
      if (first[o] != static_cast<int32_t>(twice ? o / 2 : 2 * o) || count[o] != most) return;
    }
    const auto is_one = [](double weight) { return weight == 1; };
    if (!std::all_of(doubles.by_output.begin(), doubles.by_output.end(), is_one)) return;
    pattern = twice ? Pattern::kRepeatTwice : Pattern::kSumPairs;
  }
};

namespace detail {

inline constexpr int kRowsAtOnce = 4;  // rows that are summed in one pass

template <typename A>
struct WeightedRows {
  const A* row[kRowsAtOnce];
  A weight[kRowsAtOnce];
};

// to[j] = or += the sum of weight[k] row[k][j].
template <int kRows, bool kAdd, typename A>
MXTRAIN_SIMD void WeightedSum(int64_t n, WeightedRows<A> rows, A* to) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    A sum = rows.weight[0] * rows.row[0][j];
    for (int k = 1; k < kRows; ++k) sum += rows.weight[k] * rows.row[k][j];
    to[j] = kAdd ? to[j] + sum : sum;
  }
}

template <bool kAdd, typename A>
void SumUpToFour(int64_t n, int64_t count, const WeightedRows<A>& rows, A* to) {
  switch (count) {
    case 1:
      return WeightedSum<1, kAdd>(n, rows, to);
    case 2:
      return WeightedSum<2, kAdd>(n, rows, to);
    case 3:
      return WeightedSum<3, kAdd>(n, rows, to);
    default:
      return WeightedSum<4, kAdd>(n, rows, to);
  }
}

// The same for `count` rows; row_at(k) is valid until row_at(k + kRowsAtOnce).
template <typename A, typename RowAt>
void SumManyRows(int64_t n, int64_t count, const A* weights, const RowAt& row_at, bool add, A* to) {
  if (count == 0 && !add) std::fill_n(to, n, A(0));
  for (int64_t k = 0; k < count; k += kRowsAtOnce) {
    const int64_t taken = std::min<int64_t>(count - k, kRowsAtOnce);
    WeightedRows<A> rows{};
    for (int64_t t = 0; t < taken; ++t) {
      rows.row[t] = row_at(k + t);
      rows.weight[t] = weights[k + t];
    }
    if (add || k > 0) {
      SumUpToFour<true>(n, taken, rows, to);
    } else {
      SumUpToFour<false>(n, taken, rows, to);
    }
  }
}

// A row of outputs with few taps each; weights by tap.
template <int kTaps, bool kAdd, typename A>
MXTRAIN_SIMD void GatherTaps(int64_t n, const int32_t* first, const int32_t* count,
                             const A* weights, const A* from, A* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    A sum = kAdd ? to[i] : A(0);
    for (int32_t k = 0; k < kTaps; ++k) {
      const bool reads = k < count[i];  // what is not read may be infinite
      const A term = weights[k * n + i] * from[first[i] + (reads ? k : 0)];
      sum += reads ? term : A(0);
    }
    to[i] = sum;
  }
}

// A row of outputs with many taps each; weights by output.
template <bool kAdd, typename A>
MXTRAIN_SIMD void DotTaps(int64_t n, int64_t most, const int32_t* first, const int32_t* count,
                          const A* weights, const A* from, A* to) {
  constexpr int kParts = 8;
  for (int64_t i = 0; i < n; ++i) {
    const A *x = from + first[i], *w = weights + i * most;
    A parts[kParts] = {};
    int32_t k = 0;
    for (; k + kParts <= count[i]; k += kParts) {
      for (int p = 0; p < kParts; ++p) parts[p] += w[k + p] * x[k + p];
    }
    A sum = kAdd ? to[i] : A(0);
    for (; k < count[i]; ++k) sum += w[k] * x[k];
    for (const A part : parts) sum += part;
    to[i] = sum;
  }
}

template <bool kAdd, typename A>
MXTRAIN_SIMD void RepeatTwice(int64_t n, const A* from, A* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    to[2 * i] = kAdd ? to[2 * i] + from[i] : from[i];
    to[2 * i + 1] = kAdd ? to[2 * i + 1] + from[i] : from[i];
  }
}

template <bool kAdd, typename A>
MXTRAIN_SIMD void SumPairs(int64_t n, const A* from, A* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const A sum = from[2 * i] + from[2 * i + 1];
    to[i] = kAdd ? to[i] + sum : sum;
  }
}

// Elements to and from the type of sums.
template <typename T, typename A>
MXTRAIN_SIMD void LoadRow(int64_t n, const T* from, A* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<A>(from[i]);
}
template <bool kAdd, typename T, typename A>
MXTRAIN_SIMD void StoreRow(int64_t n, const A* from, T* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    to[i] = ElementOf<T>(kAdd ? static_cast<A>(to[i]) + from[i] : from[i]);
}

}  // namespace detail

// The rows of outputs of one plane after another, on one thread.
template <typename T>
class ResampleRows {
 public:
  using A = AccumulatorOf<T>;

  // Of the scratch that the constructor takes.
  static int64_t Bytes(const TapTable& h, const TapTable& w, int64_t inner, int64_t element) {
    const int64_t in_row = w.in * inner, out_row = w.out * inner;
    const int64_t elements = ColumnsFirst(h) ? (h.most + 1) * out_row + in_row
                                             : (1 + detail::kRowsAtOnce) * in_row + out_row;
    return RoundUp(elements * element, kBufferAlignment);
  }

  ResampleRows(const TapTable& h, const TapTable& w, int64_t inner, void* scratch)
      : h_(h),
        w_(w),
        inner_(inner),
        in_row_(w.in * inner),
        out_row_(w.out * inner),
        columns_first_(ColumnsFirst(h)) {
    sums_ = static_cast<A*>(scratch);
    kept_ = sums_ + out_row_;
    loaded_ = kept_ + (columns_first_ ? h.most * out_row_ : in_row_);
  }

  // Row y of the output = or += that of `plane`. Called with ascending y for a plane, and with
  // NextPlane() between planes.
  void Row(int64_t y, const T* plane, bool add, T* to) {
    if constexpr (kDirect) {
      Sum(y, plane, add, to);
    } else {
      Sum(y, plane, false, sums_);
      if (add) {
        detail::StoreRow<true>(out_row_, sums_, to);
      } else {
        detail::StoreRow<false>(out_row_, sums_, to);
      }
    }
  }
  void NextPlane() { ready_ = 0; }

 private:
  static constexpr bool kDirect = std::is_same_v<T, A>;
  static bool ColumnsFirst(const TapTable& h) { return h.in <= h.out; }

  void Sum(int64_t y, const T* plane, bool add, A* to) {
    const int64_t first = h_.first.data()[y], count = h_.count.data()[y];
    const A* weights = h_.weights<A>().by_output.data() + y * h_.most;
    if (columns_first_) {
      for (int64_t i = std::max(ready_, first); i < first + count; ++i)
        Columns(Load(plane + i * in_row_, loaded_), false, Kept(i));
      ready_ = std::max(ready_, first + count);
      detail::SumManyRows(
          out_row_, count, weights, [&](int64_t k) { return Kept(first + k); }, add, to);
    } else {
      const auto row_at = [&](int64_t k) {
        return Load(plane + (first + k) * in_row_, loaded_ + k % detail::kRowsAtOnce * in_row_);
      };
      detail::SumManyRows(in_row_, count, weights, row_at, false, kept_);
      Columns(kept_, add, to);
    }
  }

  // The row of `from` with its columns resampled.
  void Columns(const A* from, bool add, A* to) const {
    if (inner_ > 1) {
      const auto& weights = w_.weights<A>().by_output;
      for (int64_t x = 0; x < w_.out; ++x) {
        const A* pixel = from + w_.first.data()[x] * inner_;
        detail::SumManyRows(
            inner_, w_.count.data()[x], weights.data() + x * w_.most,
            [&](int64_t k) { return pixel + k * inner_; }, add, to + x * inner_);
      }
    } else if (add) {
      ColumnsOf<true>(from, to);
    } else {
      ColumnsOf<false>(from, to);
    }
  }
  template <bool kAdd>
  void ColumnsOf(const A* from, A* to) const {
    if (w_.pattern == TapTable::Pattern::kRepeatTwice)
      return detail::RepeatTwice<kAdd>(w_.in, from, to);
    if (w_.pattern == TapTable::Pattern::kSumPairs) return detail::SumPairs<kAdd>(w_.out, from, to);
    const int32_t *first = w_.first.data(), *count = w_.count.data();
    const auto& weights = w_.weights<A>();
    switch (w_.gathered) {
      case 1:
        return detail::GatherTaps<1, kAdd>(w_.out, first, count, weights.by_tap.data(), from, to);
      case 2:
        return detail::GatherTaps<2, kAdd>(w_.out, first, count, weights.by_tap.data(), from, to);
      case 4:
        return detail::GatherTaps<4, kAdd>(w_.out, first, count, weights.by_tap.data(), from, to);
      case 8:
        return detail::GatherTaps<8, kAdd>(w_.out, first, count, weights.by_tap.data(), from, to);
      default:
        return detail::DotTaps<kAdd>(w_.out, w_.most, first, count, weights.by_output.data(), from,
                                     to);
    }
  }

  // The row in the type of sums; in `room` if that is another.
  const A* Load(const T* row, A* room) const {
    if constexpr (kDirect) {
      return row;
    } else {
      detail::LoadRow(in_row_, row, room);
      return room;
    }
  }
  // Where row i of the input is kept: the rows that one output reads are at different places.
  A* Kept(int64_t i) const { return kept_ + i % h_.most * out_row_; }

  const TapTable &h_, &w_;
  const int64_t inner_, in_row_, out_row_;
  const bool columns_first_;
  A *sums_, *kept_, *loaded_;
  int64_t ready_ = 0;  // rows of the plane before this one need no more work
};

}  // namespace mxtrain
