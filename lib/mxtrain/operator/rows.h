// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows: units of work whose elements belong together, such as a sum or a softmax. A team processes
// a row: one CPU thread, or the threads of a GPU warp or block (rows.cuh). Code written for a team
// serves all of them:
//
//   struct SumRow {
//     template <typename Team>
//     MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
//       double sum = 0;
//       for (int64_t k = team.rank(); k < length; k += team.size()) sum += x[row * length + k];
//       sum = team.Fold(sum, AddBoth{});  // of the whole team, for all its members
//       if (team.rank() == 0) y[row] = sum;
//     }
//   };
// The order in which a team combines values depends only on its size, and the size only on shapes,
// so results repeat bit for bit. All members of a team call Fold together; its operation is
// commutative.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/kernel.h"

namespace mxtrain {

struct SoloTeam {
  MXTRAIN_HD static constexpr int rank() { return 0; }
  MXTRAIN_HD static constexpr int size() { return 1; }
  template <typename V, typename Op>
  MXTRAIN_HD V Fold(V value, Op) const {
    return value;
  }
};

struct AddBoth {
  template <typename V>
  MXTRAIN_HD V operator()(V a, V b) const {
    return a + b;
  }
};
struct LargerOf {
  template <typename V>
  MXTRAIN_HD V operator()(V a, V b) const {
    return a < b ? b : a;
  }
};

// Elements that a GPU thread loads before it uses the first one: memory has high latency but serves
// many loads at once.
inline constexpr int kLoadsAhead = 8;

// f(team, row) for every row in [0, rows), each of about `length` contiguous elements.
template <typename F>
void ForRows(const OnCpu&, int64_t rows, int64_t length, const F& f) {
  ParallelFor(rows, std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, length)),
              [&f](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) f(SoloTeam{}, row);
              });
}
// The same when the elements of a row are not contiguous and adjacent rows are.
template <typename F>
void ForColumns(const OnCpu& device, int64_t columns, int64_t length, const F& f) {
  ForRows(device, columns, length, f);
}

// For contiguous rows that are independent of each other: ForRows if they are long enough for a
// team, else a thread for each.
template <typename Device, typename F>
void ForRowsOfAnyLength(const Device& device, int64_t rows, int64_t length, const F& f) {
  constexpr int64_t kLongEnough = 32;
  if (length >= kLongEnough) {
    ForRows(device, rows, length, f);
  } else {
    ForColumns(device, rows, length, f);
  }
}

// How a few long rows are divided into slices to occupy the whole device: slice s of a row is
// [Begin(s), Begin(s + 1)).
struct Slices {
  int64_t length = 0, count = 1;

  Slices() = default;
  // For ForRows: teams process slices.
  Slices(int64_t rows, int64_t row_length) : Slices(rows, row_length, 1024, 2048) {}
  // For ForColumns: single threads process slices.
  static Slices OfColumns(int64_t columns, int64_t column_length) {
    return {columns, column_length, 1 << 18, 64};
  }

  MXTRAIN_HD int64_t Begin(int64_t slice) const {
    return length / count * slice + length % count * slice / count;
  }
  int64_t longest() const { return CeilDivide(length, count); }

 private:
  // `enough`: slices of all rows together; `shortest`: least elements of a slice.
  Slices(int64_t rows, int64_t row_length, int64_t enough, int64_t shortest)
      : length(row_length),
        count(std::clamp<int64_t>(
            std::min(enough / std::max<int64_t>(rows, 1), row_length / shortest), 1, enough)) {}
};

namespace detail {

template <typename V, typename F>
struct SliceRow {
  Slices slices;
  F term;
  V* parts;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t slice) const {
    V sum{};
    const int64_t end = slices.Begin(slice + 1);
    for (int64_t k = slices.Begin(slice) + team.rank(); k < end; k += team.size())
      sum = sum + term(k);
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) parts[slice] = sum;
  }
};

template <typename V>
struct StoreSum {
  V* sums;
  MXTRAIN_HD void operator()(int64_t row, const V& sum) const { sums[row] = sum; }
};

}  // namespace detail

// put(row, sum) with the sum of the `count` parts of each row, as a body of ForRows.
template <typename V, typename Put>
struct JoinParts {
  int64_t count;
  const V* parts;
  Put put;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    V sum{};
    for (int64_t k = team.rank(); k < count; k += team.size()) sum = sum + parts[row * count + k];
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) put(row, sum);
  }
};
// sums[row] = the sum of the parts.
template <typename V, typename Device>
void SumParts(const Device& device, int64_t rows, int64_t count, const V* parts, V* sums) {
  ForRows(device, rows, count,
          JoinParts<V, detail::StoreSum<V>>{count, parts, detail::StoreSum<V>{sums}});
}

// Size in bytes of the scratch space of SumTerms.
template <typename V>
int64_t BytesOfSum(const Slices& slices) {
  return (slices.count + 1) * static_cast<int64_t>(sizeof(V));
}
// The sum of term(k), of type V, over [0, slices.length). The result is at the start of `scratch`;
// the function returns that address. Evaluates every term once.
template <typename V, typename Device, typename F>
const V* SumTerms(const Device& device, const Slices& slices, const F& term, V* scratch) {
  V* parts = scratch + 1;
  ForRows(device, slices.count, slices.longest(), detail::SliceRow<V, F>{slices, term, parts});
  SumParts(device, 1, slices.count, parts, scratch);
  return scratch;
}

}  // namespace mxtrain
