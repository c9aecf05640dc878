// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reduce: folds the elements of a plain array, or of a function of broadcast arrays, over some
// axes, in double. Written once for all devices. The order in which elements are combined depends
// only on shapes, so results repeat bit for bit with any number of threads.
#include <array>

#include "mxtrain/operator/broadcast.h"
#include "mxtrain/operator/fold.h"
#include "mxtrain/operator/rows.h"

namespace mxtrain {

using AxisFlags = std::array<bool, TShape::kMaxDims>;

// Some axes of a plain array. Trivially copyable, for kernels.
struct ReductionAxes {
  int ndim = 0;
  int64_t size = 1;
  int64_t length[TShape::kMaxDims] = {}, stride[TShape::kMaxDims] = {};
  FastDivider divider[TShape::kMaxDims];

  // Appends an axis, or merges it with the last one, which is its neighbour in the array.
  void Add(int64_t new_length, int64_t new_stride, bool merges) {
    if (merges) new_length *= length[--ndim];
    length[ndim] = new_length;
    stride[ndim++] = new_stride;
  }
  void Complete() {
    for (int i = 0; i < ndim; ++i) {
      size *= length[i];
      divider[i] = FastDivider(length[i]);
    }
  }
  // Offset of element `index` of this space, in row-major order.
  MXTRAIN_HD int64_t Offset(int64_t index) const {
    int64_t offset = 0;
    for (int i = ndim - 1; i > 0; --i) {
      int64_t rest, k;
      divider[i].Divide(index, &rest, &k);
      offset += k * stride[i];
      index = rest;
    }
    return ndim > 0 ? offset + index * stride[0] : offset;
  }
};

// Which elements of an array of `shape` belong to each result: results are numbered in row-major
// order of the axes that are kept. Axes are merged.
struct Reduction {
  ReductionAxes kept, reduced;
  bool rows = true;   // the last axis is reduced
  int64_t inner = 1;  // its length
  Slices slices;      // of the terms of a result

  Reduction(const TShape& shape, const AxisFlags& flags) {
    for (int i = 0; i < shape.ndim(); ++i) {
      if (shape[i] == 1) continue;
      const bool flag = flags[static_cast<size_t>(i)], merges = kept.ndim + reduced.ndim > 0;
      (flag ? reduced : kept)
          .Add(shape[i], shape.Product(i + 1, shape.ndim()), merges && flag == rows);
      rows = flag;
    }
    kept.Complete();
    reduced.Complete();
    const ReductionAxes& last = rows ? reduced : kept;
    inner = last.ndim > 0 ? last.length[last.ndim - 1] : 1;
    slices = rows ? Slices(kept.size, reduced.size) : Slices::OfColumns(kept.size, reduced.size);
  }

  // Scratch that ReduceOver needs.
  inline int64_t ScratchBytes() const;
};

// Sources of a reduction. At(i) is element i, for devices. On the CPU each thread has a Reader:
// Fold<F>(begin, columns, rows, stride, folded) is FoldInto with the elements from `begin` on.

// A plain array.
template <typename T>
struct ArraySource {
  using Value = ComputeOf<T>;
  const T* x;
  MXTRAIN_HD double At(int64_t i) const { return static_cast<double>(x[i]); }

  struct Reader {
    const T* x;
    template <typename F, typename A>
    void Fold(int64_t begin, int64_t columns, int64_t rows, int64_t stride, A* folded) {
      detail::FoldInto<F>(folded, columns, rows, stride, SameValue{}, x + begin);
    }
  };
  Reader NewReader() const { return {x}; }
};

// f(a, b, ...) of broadcast arrays, over their common shape. T: the type that says how f computes.
template <typename T, typename F, typename... In>
struct MapSource {
  using Value = ComputeOf<T>;
  detail::BroadcastValue<Value, F, In...> value;

  MapSource(const TShape& whole, const F& f, const Broadcast<In>&... in)
      : value{f, BroadcastSpace<sizeof...(In)>(whole, {&in.shape...}), {in.data...}} {}
  MXTRAIN_HD double At(int64_t i) const { return static_cast<double>(value(i)); }

  class Reader {
   public:
    Reader(const F& f, detail::BroadcastBlocks<In...>&& blocks)
        : f_(f), blocks_(std::move(blocks)) {}
    template <typename Folding, typename A>
    void Fold(int64_t begin, int64_t columns, int64_t rows, int64_t stride, A* folded) {
      if (stride == columns) {
        FoldRun<Folding>(begin, columns * rows, columns, folded);
      } else {
        for (int64_t r = 0; r < rows; ++r)
          FoldRun<Folding>(begin + r * stride, columns, columns, folded);
      }
    }

   private:
    // Element begin + k goes to folded[k % columns].
    template <typename Folding, typename A>
    void FoldRun(int64_t begin, int64_t count, int64_t columns, A* folded) {
      blocks_.Run(begin, begin + count, [&](int64_t at, int64_t n, const In*... block) {
        for (int64_t done = 0; done < n;) {
          const int64_t j = (at + done - begin) % columns;
          const int64_t rows = j == 0 ? (n - done) / columns : 0;
          const int64_t width = rows > 0 ? columns : std::min(columns - j, n - done);
          detail::FoldInto<Folding>(folded + j, width, std::max<int64_t>(rows, 1), columns, f_,
                                    (block + done)...);
          done += std::max<int64_t>(rows, 1) * width;
        }
      });
    }

    F f_;
    detail::BroadcastBlocks<In...> blocks_;
  };
  Reader NewReader() const { return NewReader(std::make_index_sequence<sizeof...(In)>{}); }

 private:
  template <size_t... kIndex>
  Reader NewReader(std::index_sequence<kIndex...>) const {
    return {value.f, {value.space, static_cast<const In*>(value.in[kIndex])...}};
  }
};

namespace detail {

inline constexpr int64_t kFoldBlock = 1024;  // accumulators of a task: in the first-level cache
inline constexpr int64_t kFoldTasks = 128;   // enough for all threads

// How the CPU runs a reduction. A task folds some neighbouring results: one by one if their terms
// are long rows, else side by side, reading rows of the array that lie next to each other.
struct FoldPlan {
  ReductionAxes terms;    // what is reduced but for `group`
  int64_t group = 1;      // adjacent elements of a result that have accumulators of their own
  int64_t across = 1;     // results whose elements adjoin
  int64_t at_a_time = 1;  // results of a task
  int64_t blocks = 0;     // of that many results
  FastDivider by_blocks, by_row;  // by_row: blocks of adjoining results
  Slices slices;                  // of `terms`

  explicit FoldPlan(const Reduction& r) : terms(r.reduced) {
    const bool short_rows = r.rows && r.kept.ndim > 0 && r.inner > 0 && r.inner < 4 * kFoldLanes;
    if (short_rows) {
      group = r.inner;
      terms.size /= group;
      --terms.ndim;
    }
    if (!r.rows || short_rows) across = r.kept.length[r.kept.ndim - 1];
    at_a_time = std::clamp<int64_t>(across, 1, kFoldBlock / group);
    const int64_t per_row = CeilDivide(across, at_a_time);
    if (r.kept.size > 0) blocks = r.kept.size / across * per_row;
    by_blocks = FastDivider(blocks);
    by_row = FastDivider(per_row);
    slices.length = terms.size;
    slices.count = std::clamp<int64_t>(
        std::min(kFoldTasks / std::max<int64_t>(blocks, 1), elements() / kParallelGrain), 1,
        std::max<int64_t>(terms.size, 1));
  }
  int64_t elements() const { return terms.size * at_a_time * group; }
};

// The folds of one slice of the results of a block. store(result, folded).
template <typename F, typename A, typename Reader, typename Store>
void FoldTask(const Reduction& r, const FoldPlan& plan, Reader& reader, int64_t block,
              int64_t slice, const Store& store) {
  alignas(64) A folded[kFoldBlock];
  const ReductionAxes& terms = plan.terms;
  int64_t row, at;
  plan.by_row.Divide(block, &row, &at);
  at *= plan.at_a_time;
  const int64_t first = row * plan.across + at;
  const int64_t n = std::min(plan.at_a_time, plan.across - at), columns = n * plan.group;
  const int64_t base = r.kept.Offset(first);
  const auto emit = [&] {
    for (int64_t c = 0; c < n; ++c) store(first + c, static_cast<double>(folded[c]));
  };
  if constexpr (requires { reader.x; }) {
    if (plan.group > 1 && terms.size == 1) {
      FoldGroups<F>(reader.x + base, n, plan.group, folded);
      return emit();
    }
  }
  const bool sliced = plan.slices.count > 1;
  const int64_t begin = sliced ? plan.slices.Begin(slice) : 0;
  const int64_t end = sliced ? plan.slices.Begin(slice + 1) : terms.size;
  // Terms along their last axis have constant stride. If they adjoin, as many as occupy the
  // processor have accumulators of their own.
  const int last = terms.ndim - 1;
  const int64_t along = last >= 0 ? terms.length[last] : 1;
  const int64_t step = last >= 0 ? terms.stride[last] : 0;
  int64_t at_once = 1;
  if (step == columns && columns < kFoldLanes && begin < end)
    at_once = std::min({along, end - begin, CeilDivide(kFoldLanes, columns)});
  std::fill_n(folded, at_once * columns, static_cast<A>(F::kStart));
  int64_t phase = sliced ? begin % along : 0;
  for (int64_t k = begin; k < end; phase = 0) {
    const int64_t count = std::min(along - phase, end - k);
    const int64_t rows = count / at_once, rest = count - rows * at_once;
    const int64_t from = base + terms.Offset(k);
    reader.template Fold<F>(from, at_once * columns, rows, at_once * step, folded);
    if (rest > 0)
      reader.template Fold<F>(from + (count - rest) * step, rest * columns, 1, 0, folded);
    k += count;
  }
  JoinAdjacent<F>(folded, columns, at_once);
  if (plan.group > 1) FoldGroups<JoinFold<F>>(folded, n, plan.group, folded);
  emit();
}

template <typename F, typename Source>
struct FoldSlice {
  Reduction reduction;
  Source source;
  double* parts;  // [result][slice]
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    // Neighbouring tasks read neighbouring elements.
    const int64_t count = reduction.slices.count, results = reduction.kept.size;
    const int64_t i = reduction.rows ? task / count : task % results;
    const int64_t slice = reduction.rows ? task % count : task / results;
    const int64_t base = reduction.kept.Offset(i), end = reduction.slices.Begin(slice + 1);
    double folded = F::kStart;
    for (int64_t k = reduction.slices.Begin(slice) + team.rank(); k < end; k += team.size())
      folded = F::Step(folded, source.At(base + reduction.reduced.Offset(k)));
    folded = team.Fold(folded, JoinOf<F>{});
    if (team.rank() == 0) parts[i * count + slice] = folded;
  }
  template <typename G>
  struct JoinOf {
    MXTRAIN_HD double operator()(double a, double b) const { return G::Join(a, b); }
  };
};

// Joins the slices of a result, or folds a result that has only one.
template <typename F, typename Source, typename Emit>
struct ResultRow {
  Reduction reduction;
  Source source;
  const double* parts;
  Emit emit;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    double folded = F::kStart;
    if (reduction.slices.count > 1) {
      for (int64_t k = team.rank(); k < reduction.slices.count; k += team.size())
        folded = F::Join(folded, parts[i * reduction.slices.count + k]);
    } else {
      const int64_t base = reduction.kept.Offset(i);
      for (int64_t k = team.rank(); k < reduction.reduced.size; k += team.size())
        folded = F::Step(folded, source.At(base + reduction.reduced.Offset(k)));
    }
    folded = team.Fold(folded, typename FoldSlice<F, Source>::template JoinOf<F>{});
    if (team.rank() == 0) emit(i, folded);
  }
};

}  // namespace detail

inline int64_t Reduction::ScratchBytes() const {
  const int64_t count = std::max(slices.count, detail::FoldPlan(*this).slices.count);
  return count > 1 ? kept.size * count * static_cast<int64_t>(sizeof(double)) : 0;
}

// emit(i, fold of the terms of result i) for every result. `scratch`: ScratchBytes, or null if
// that is 0.
template <typename F, typename Source, typename Emit>
void ReduceOver(const OnCpu&, const Reduction& r, const Source& source, double* scratch,
                const Emit& emit) {
  using A = typename detail::AccumulatorOfFold<F, typename Source::Value>::Type;
  const detail::FoldPlan plan(r);
  const int64_t count = plan.slices.count, results = r.kept.size;
  const int64_t elements = std::max<int64_t>(1, plan.elements() / count);
  ParallelFor(plan.blocks * count, std::max<int64_t>(1, kParallelGrain / elements),
              [&](int64_t begin, int64_t end) {
                auto reader = source.NewReader();
                for (int64_t task = begin; task < end; ++task) {
                  int64_t slice, block;
                  plan.by_blocks.Divide(task, &slice, &block);
                  if (count > 1) {
                    detail::FoldTask<F, A>(r, plan, reader, block, slice,
                                           [part = scratch + slice * results](
                                               int64_t i, double folded) { part[i] = folded; });
                  } else {
                    detail::FoldTask<F, A>(r, plan, reader, block, slice, emit);
                  }
                }
              });
  if (count == 1) return;
  ParallelFor(results, std::max<int64_t>(1, kParallelGrain / count),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  double folded = scratch[i];
                  for (int64_t k = 1; k < count; ++k)
                    folded = F::Join(folded, scratch[k * results + i]);
                  emit(i, folded);
                }
              });
}

template <typename F, typename Device, typename Source, typename Emit>
void ReduceOver(const Device& device, const Reduction& r, const Source& source, double* scratch,
                const Emit& emit) {
  const detail::FoldSlice<F, Source> slice{r, source, scratch};
  const detail::ResultRow<F, Source, Emit> row{r, source, scratch, emit};
  const int64_t count = r.slices.count, longest = r.slices.longest();
  if (count > 1) {
    if (r.rows) {
      ForRows(device, r.kept.size * count, longest, slice);
    } else {
      ForColumns(device, r.kept.size * count, longest, slice);
    }
    return ForRows(device, r.kept.size, count, row);
  }
  if (r.rows) {
    ForRows(device, r.kept.size, longest, row);
  } else {
    ForColumns(device, r.kept.size, longest, row);
  }
}

// Stores results: y[i] = the fold as an element of T, honouring the request (not kNullOp).
template <typename T>
struct StoreFold {
  T* y;
  OpReqType req;
  MXTRAIN_HD void operator()(int64_t i, double folded) const {
    Assign(req, y, i, static_cast<ComputeOf<T>>(folded));
  }
};

struct SumFold {
  static constexpr double kStart = 0;
  MXTRAIN_HD static double Step(double sum, double x) { return sum + x; }
  MXTRAIN_HD static double Join(double a, double b) { return a + b; }
};

// The gradient of broadcasting: grad = the sum of f(a, b, ...) over the axes along which `grad` was
// repeated to `whole`. `scratch`: SumScratchBytes.
inline AxisFlags RepeatedAxes(const TShape& whole, const TShape& part) {
  AxisFlags flags{};
  for (int i = 0; i < whole.ndim(); ++i) flags[static_cast<size_t>(i)] = part[i] != whole[i];
  return flags;
}
inline int64_t SumScratchBytes(const TShape& whole, const TShape& part) {
  return whole == part ? 0 : Reduction(whole, RepeatedAxes(whole, part)).ScratchBytes();
}
template <typename T, typename Device, typename F, typename... In>
void SumBroadcast(const Device& device, const TShape& whole, const TBlob& grad, OpReqType req,
                  double* scratch, const F& f, const Broadcast<In>&... in) {
  if (req == OpReqType::kNullOp) return;
  if (whole == grad.shape) return MapBroadcast<T>(device, grad, req, f, in...);
  ReduceOver<SumFold>(device, Reduction(whole, RepeatedAxes(whole, grad.shape)),
                      MapSource<T, F, In...>(whole, f, in...), scratch,
                      StoreFold<T>{grad.dptr<T>(), req});
}

template <typename T, typename F>
struct StoreMapped {
  StoreFold<T> store;
  F f;
  MXTRAIN_HD void operator()(int64_t i, double folded) const { store(i, f(folded)); }
};
// The same with one input, `head` of the whole shape, where f is linear, such as -a, and takes
// ComputeOf<T> and double.
template <typename T, typename Device, typename F>
void SumLinear(const Device& device, const TBlob& head, const TBlob& grad, OpReqType req,
               double* scratch, const F& f) {
  if (req == OpReqType::kNullOp) return;
  if (head.shape == grad.shape) return MapBroadcast<T>(device, grad, req, f, Broadcast<T>(head));
  ReduceOver<SumFold>(device, Reduction(head.shape, RepeatedAxes(head.shape, grad.shape)),
                      ArraySource<T>{head.dptr<T>()}, scratch,
                      StoreMapped<T, F>{{grad.dptr<T>(), req}, f});
}

}  // namespace mxtrain
