// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/argmax/argmax_search.h"

namespace mxtrain::argmax {

// Columns that are searched together.
inline constexpr int64_t kLanes = 32;

// The better of row 0 and rows [1, rows) for each of `lanes` columns, with its row. Rows are
// `stride` apart. A: the type to compare in; P: an integer of its width.
template <typename F, typename T, typename A, typename P>
MXTRAIN_SIMD void SearchLanes(const T* x, P rows, int64_t stride, int64_t lanes, A* best, P* row) {
  for (int64_t j = 0; j < lanes; ++j) {
    best[j] = static_cast<A>(x[j]);
    row[j] = 0;
  }
  for (P r = 1; r < rows; ++r) {
    x += stride;
#pragma GCC ivdep
    for (int64_t j = 0; j < lanes; ++j) {
      const A value = static_cast<A>(x[j]), old = best[j];
      // Bitwise: no branches.
      const bool better = (F::Better(value, old) | (value != value)) & (old == old);
      best[j] = better ? value : old;
      row[j] = better ? r : row[j];
    }
  }
}

namespace {

template <typename F, typename T>
class CpuSearch {
 public:
  CpuSearch(const T* x, const Results<T>& results)
      : x_(x), results_(results), split_(results.columns.split), slices_(results.columns.slices) {}

  void Run() const {
    if (split_.inner == 1) {
      RunContiguous();
    } else {
      RunSideBySide();
    }
  }

 private:
  using A = AccumulatorOf<T>;
  using P = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;

  static int64_t GrainOf(int64_t elements) {
    return std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, elements));
  }

  // Tasks are slices; a slice counts as rows of kLanes elements and a rest.
  void RunContiguous() const {
    ParallelFor(split_.outer * slices_.count, GrainOf(slices_.longest()),
                [this](int64_t begin, int64_t end) {
                  for (int64_t task = begin; task < end; ++task) {
                    const int64_t column = task / slices_.count, slice = task % slices_.count;
                    results_.Put(column, slice,
                                 SearchRun(x_ + column * split_.length, slices_.Begin(slice),
                                           slices_.Begin(slice + 1)));
                  }
                });
  }
  Found SearchRun(const T* column, int64_t begin, int64_t end) const {
    Found found;
    const int64_t rows = (end - begin) / kLanes;
    MXTRAIN_ASSERT(rows <= std::numeric_limits<P>::max());
    int64_t rest = begin;
    if (rows > 1) {
      A best[kLanes];
      P row[kLanes];
      SearchLanes<F>(column + begin, static_cast<P>(rows), kLanes, kLanes, best, row);
      for (int64_t j = 0; j < kLanes; ++j) {
        const int64_t place = begin + static_cast<int64_t>(row[j]) * kLanes + j;
        found = BetterOf<F>()(found, Found{static_cast<double>(best[j]), place});
      }
      rest += rows * kLanes;
    }
    for (; rest < end; ++rest)
      found = BetterOf<F>()(found, Found{static_cast<double>(column[rest]), rest});
    return found;
  }

  // Tasks are blocks of adjacent columns of one slice.
  void RunSideBySide() const {
    const int64_t blocks = CeilDivide(split_.inner, kLanes);
    ParallelFor(split_.outer * slices_.count * blocks,
                GrainOf(slices_.longest() * std::min(split_.inner, kLanes)),
                [this, blocks](int64_t begin, int64_t end) {
                  for (int64_t task = begin; task < end; ++task) {
                    const int64_t piece = task / blocks;
                    SearchBlock(piece / slices_.count, piece % slices_.count,
                                task % blocks * kLanes);
                  }
                });
  }
  void SearchBlock(int64_t outer, int64_t slice, int64_t first) const {
    const int64_t begin = slices_.Begin(slice), rows = slices_.Begin(slice + 1) - begin,
                  lanes = std::min(kLanes, split_.inner - first);
    MXTRAIN_ASSERT(rows > 0 && rows <= std::numeric_limits<P>::max());
    A best[kLanes];
    P row[kLanes];
    SearchLanes<F>(x_ + (outer * split_.length + begin) * split_.inner + first,
                   static_cast<P>(rows), split_.inner, lanes, best, row);
    for (int64_t j = 0; j < lanes; ++j) {
      results_.Put(outer * split_.inner + first + j, slice,
                   Found{static_cast<double>(best[j]), begin + static_cast<int64_t>(row[j])});
    }
  }

  const T* x_;
  const Results<T> results_;
  const AxisSplit split_;
  const Slices slices_;
};

}  // namespace

template <typename F, typename T>
void SearchOnCpu(const T* x, const Results<T>& results) {
  CpuSearch<F, T>(x, results).Run();
}

template void SearchOnCpu<Largest, float>(const float*, const Results<float>&);
template void SearchOnCpu<Largest, double>(const double*, const Results<double>&);
template void SearchOnCpu<Largest, float16>(const float16*, const Results<float16>&);
template void SearchOnCpu<Largest, bfloat16>(const bfloat16*, const Results<bfloat16>&);
template void SearchOnCpu<Smallest, float>(const float*, const Results<float>&);
template void SearchOnCpu<Smallest, double>(const double*, const Results<double>&);
template void SearchOnCpu<Smallest, float16>(const float16*, const Results<float16>&);
template void SearchOnCpu<Smallest, bfloat16>(const bfloat16*, const Results<bfloat16>&);

}  // namespace mxtrain::argmax
