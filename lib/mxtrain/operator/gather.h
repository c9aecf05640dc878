// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gathering rows of an array by indices, and scattering rows, its gradient:
//
//   GatherRows    to[o, n]    = from[place(o, n)]
//   ScatterRows   to[place(o, n)] = from[o, n], where no place occurs twice
//   SumRows       to[o, d]    = the sum of from[o, n] over the n with key d, in the order of n
//   LastRows      to[o, d]    = from[o, n] for the last n with key d
//
// A row is contiguous. Places count rows of the array that they refer to. All honour the request;
// the last two write zeros to rows without a source (with kAddTo these stay as they are), and their
// results are the same for any number of threads. Every function is written once for all devices,
// with a faster version for the CPU.
#include <bit>
#include <type_traits>

#include "mxtrain/operator/axis_split.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/gather_order.h"
#include "mxtrain/operator/gather_property.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/number_reader.h"

namespace mxtrain {

// Throws kData for an index outside [low, size) among indices [begin, end). Only on the CPU: a GPU
// cannot throw.
inline void CheckIndices(const OnCpu&, const NumberReader& indices, int64_t begin, int64_t end,
                         int64_t low, int64_t size, const char* who) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t index = indices.Index(i);
    if (index >= low && index < size) continue;
    Throw(ErrorKind::kData, "{}: index {} at place {} is not in [{}, {})", who, indices.Number(i),
          i - begin, low, size);
  }
}
template <typename Device>
void CheckIndices(const Device&, const NumberReader&, int64_t, int64_t, int64_t, int64_t,
                  const char*) {}

// An array of indices into [0, size); size > 0 unless the array is empty. `mode`: an IndexMode;
// kIndexRaise is treated as kIndexClip, since CheckIndices has found what is out of range.
struct RowIndex {
  NumberReader indices;
  int64_t size = 0;
  int mode = kIndexClip;

  MXTRAIN_HD int64_t operator()(int64_t i) const {
    const int64_t index = indices.Index(i);
    if (mode == kIndexWrap) {
      const int64_t rest = index % size;
      return rest < 0 ? rest + size : rest;
    }
    return index < 0 ? 0 : index < size ? index : size - 1;
  }
};

// Places: row index(n) of [outer, size] rows, the same for every o.
struct TakePlaces {
  RowIndex index;
  MXTRAIN_HD int64_t operator()(int64_t o, int64_t n) const { return o * index.size + index(n); }
};

// Places: one element of each column of [outer, size, inner], or `picks` of them: indices
// [outer, picks, inner]. Here o counts outer * picks, and n counts inner.
struct PickPlaces {
  RowIndex index;
  int64_t inner = 1, picks = 1;
  MXTRAIN_HD int64_t operator()(int64_t o, int64_t n) const {
    return (o / picks * index.size + index(o * inner + n)) * inner + n;
  }
};

// Places by an index for each of the leading axes of an array: indices [axes, count]. A negative
// index counts from the end; one that is out of range becomes the nearest that is not.
struct NdPlaces {
  NumberReader indices;
  int64_t count = 0;
  int axes = 0;
  int64_t dim[TShape::kMaxDims] = {};

  // `shape`: of the array; `indices`: [axes, ...].
  NdPlaces(const TShape& shape, const TBlob& blob)
      : indices(blob),
        count(blob.shape.Product(1, blob.shape.ndim())),
        axes(static_cast<int>(blob.shape[0])) {
    for (int a = 0; a < axes; ++a) dim[a] = shape[a];
  }
  MXTRAIN_HD int64_t operator()(int64_t, int64_t n) const {
    int64_t place = 0;
    for (int a = 0; a < axes; ++a) {
      int64_t index = indices.Index(a * count + n);
      if (index < 0) index += dim[a];
      place = place * dim[a] + (index < 0 ? 0 : index < dim[a] ? index : dim[a] - 1);
    }
    return place;
  }
};

// The rows that correspond to indices: [outer, count] rows of `length` elements.
struct RowGrid {
  int64_t outer = 1, count = 0, length = 1;
  MXTRAIN_HD int64_t rows() const { return outer * count; }
};

namespace detail {

// to = from, or += it, for `length` elements.
template <typename T>
void CopyRow(OpReqType req, int64_t length, const T* from, T* to) {
  if (req == OpReqType::kAddTo) {
    for (int64_t k = 0; k < length; ++k) Assign(req, to, k, static_cast<ComputeOf<T>>(from[k]));
  } else if (length == 1) {
    *to = *from;
  } else {
    std::copy_n(from, length, to);
  }
}

template <bool kGather, typename T, typename Places>
struct MoveRow {
  RowGrid grid;
  Places places;
  const T* from;
  T* to;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const int64_t place = places(row / grid.count, row % grid.count);
    const T* source = from + (kGather ? place : row) * grid.length;
    T* sink = to + (kGather ? row : place) * grid.length;
    for (int64_t k = team.rank(); k < grid.length; k += team.size()) {
      if (req == OpReqType::kAddTo) {
        Assign(req, sink, k, static_cast<ComputeOf<T>>(source[k]));
      } else {
        sink[k] = source[k];
      }
    }
  }
};
template <bool kGather, typename Device, typename T, typename Places>
void MoveRows(const Device& device, const MoveRow<kGather, T, Places>& move) {
  ForRowsOfAnyLength(device, move.grid.rows(), move.grid.length, move);
}
// Without a division per row.
template <bool kGather, typename T, typename Places>
void MoveRows(const OnCpu&, const MoveRow<kGather, T, Places>& move) {
  const RowGrid grid = move.grid;
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, grid.length));
  ParallelFor(grid.rows(), grain, [&](int64_t begin, int64_t end) {
    int64_t o = begin / grid.count, n = begin % grid.count;
    for (int64_t row = begin; row < end; ++o, n = 0) {
      for (const int64_t last = std::min(end, row + grid.count - n); row < last; ++row, ++n) {
        const int64_t place = move.places(o, n);
        CopyRow(move.req, grid.length, move.from + (kGather ? place : row) * grid.length,
                move.to + (kGather ? row : place) * grid.length);
      }
    }
  });
}

// Sources n in the order of their keys, which are rows of the destination. Those with equal keys
// are a run.
template <bool kSum, typename T>
struct WriteRuns {
  using A = AccumulatorOf<T>;
  RowGrid grid;
  int64_t destinations;
  const uint32_t *keys, *positions;
  const T* from;  // [grid]
  T* to;          // [grid.outer, destinations, grid.length]
  OpReqType req;

  MXTRAIN_HD bool Begins(int64_t p) const { return p == 0 || keys[p] != keys[p - 1]; }
  // The sources [first, last) that the run which begins at p adds up.
  MXTRAIN_HD void FindSources(int64_t p, int64_t* first, int64_t* last) const {
    *last = p + 1;
    while (*last < grid.count && keys[*last] == keys[p]) ++*last;
    *first = kSum ? p : *last - 1;
  }
  MXTRAIN_HD const T* Source(int64_t o, int64_t p) const {
    return from + (o * grid.count + static_cast<int64_t>(positions[p])) * grid.length;
  }
  MXTRAIN_HD T* Destination(int64_t o, int64_t p) const {
    return to + (o * destinations + static_cast<int64_t>(keys[p])) * grid.length;
  }

  // Element i of [outer, count, length]: a column of the run that begins there, if one does.
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t k = i % grid.length, row = i / grid.length, o = row / grid.count,
                  p = row % grid.count;
    if (!Begins(p)) return;
    int64_t first, last;
    FindSources(p, &first, &last);
    A sum = static_cast<A>(Source(o, first)[k]);
    for (int64_t q = first + 1; q < last; ++q) sum = Plus(sum, static_cast<A>(Source(o, q)[k]));
    Assign(req, Destination(o, p), k, sum);
  }
};
template <bool kSum, typename Device, typename T>
void WriteAllRuns(const Device& device, const WriteRuns<kSum, T>& runs) {
  Launch(device, runs.grid.rows() * runs.grid.length, runs);
}

inline constexpr int64_t kWidestPage = 256;

// The run that begins at p: `width` columns from `column` on.
template <bool kSum, typename T>
void WriteRun(const WriteRuns<kSum, T>& runs, int64_t o, int64_t p, int64_t column, int64_t width) {
  using A = AccumulatorOf<T>;
  int64_t first, last;
  runs.FindSources(p, &first, &last);
  T* to = runs.Destination(o, p) + column;
  if (last - first == 1) return CopyRow(runs.req, width, runs.Source(o, first) + column, to);
  A sums[kWidestPage];
  const T* source = runs.Source(o, first) + column;
  for (int64_t k = 0; k < width; ++k) sums[k] = static_cast<A>(source[k]);
  for (int64_t q = first + 1; q < last; ++q) {
    source = runs.Source(o, q) + column;
    for (int64_t k = 0; k < width; ++k) sums[k] = Plus(sums[k], static_cast<A>(source[k]));
  }
  SwitchReq(runs.req, [&](auto accumulate) {
    constexpr OpReqType kReq = accumulate() ? OpReqType::kAddTo : OpReqType::kWriteTo;
    for (int64_t k = 0; k < width; ++k) Assign(kReq, to, k, sums[k]);
  });
}

// A page is a range of columns of every row. Threads share pages, and the sources of a page, so
// that all work even if most sources have one destination.
template <bool kSum, typename T>
void WriteAllRuns(const OnCpu&, const WriteRuns<kSum, T>& runs) {
  const RowGrid grid = runs.grid;
  if (grid.rows() * grid.length == 0) return;
  const int64_t widest = runs.destinations < kWidestPage ? kWidestPage / 4 : kWidestPage;
  const int64_t pages = CeilDivide(grid.length, widest);
  ParallelFor(grid.rows() * pages,
              std::max<int64_t>(1, kParallelGrain / std::min(grid.length, widest)),
              [&](int64_t begin, int64_t end) {
                int64_t page = begin / grid.count, p = begin % grid.count;
                for (int64_t at = begin; at < end; ++page, p = 0) {
                  const int64_t o = page / pages, column = page % pages * widest,
                                width = std::min(widest, grid.length - column);
                  const int64_t last = std::min(end, at + grid.count - p);
                  for (; at < last; ++at, ++p) {
                    if (runs.Begins(p)) WriteRun(runs, o, p, column, width);
                  }
                }
              });
}

template <typename Places>
struct KeyOfPlace {
  Places places;
  MXTRAIN_HD uint32_t operator()(int64_t n) const { return static_cast<uint32_t>(places(0, n)); }
};

template <bool kSum, typename Device, typename Places>
void ScatterRuns(const Device& device, const RowGrid& grid, const Places& places,
                 int64_t destinations, const TBlob& from, OpReqType req, const TBlob& to,
                 void* scratch, const char* who) {
  if (req == OpReqType::kNullOp) return;
  ZeroBlob(device, req, to);
  if (grid.rows() * grid.length == 0) return;
  PositionOrder<uint32_t, Device> order(device, grid.count, scratch);
  order.SortBy(KeyOfPlace<Places>{places},
               static_cast<int>(std::bit_width(static_cast<uint64_t>(destinations - 1))));
  SwitchType(to.type, who, [&](auto tag) {
    using T = typename decltype(tag)::type;
    WriteAllRuns(device,
                 WriteRuns<kSum, T>{grid, destinations, order.keys(), order.positions(),
                                    static_cast<const T*>(from.dptr<T>()), to.dptr<T>(), req});
  });
}

template <bool kGather, typename Device, typename Places>
void MoveRowsOfType(const Device& device, const RowGrid& grid, const Places& places,
                    const TBlob& from, OpReqType req, const TBlob& to, const char* who) {
  if (req == OpReqType::kNullOp || grid.rows() == 0) return;
  SwitchType(to.type, who, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MoveRows(device, MoveRow<kGather, T, Places>{
                         grid, places, static_cast<const T*>(from.dptr<T>()), to.dptr<T>(), req});
  });
}

}  // namespace detail

// `places`: a functor for kernels, place(o, n) of the rows of `from`. `who` names the operator.
template <typename Device, typename Places>
void GatherRows(const Device& device, const RowGrid& grid, const Places& places, const TBlob& from,
                OpReqType req, const TBlob& to, const char* who) {
  detail::MoveRowsOfType<true>(device, grid, places, from, req, to, who);
}
// Writes only the places.
template <typename Device, typename Places>
void ScatterRows(const Device& device, const RowGrid& grid, const Places& places, const TBlob& from,
                 OpReqType req, const TBlob& to, const char* who) {
  detail::MoveRowsOfType<false>(device, grid, places, from, req, to, who);
}

// Size in bytes of the scratch space of SumRows and LastRows.
template <typename Device>
int64_t BytesOfSumRows(const RowGrid& grid) {
  return PositionOrder<uint32_t, Device>::Bytes(grid.count);
}
// The most sources and destinations that they take.
inline constexpr int64_t kMostSummedRows = (int64_t{1} << 32) - 1;

// The key of n is place(0, n), below `destinations`, and place(o, n) = o * destinations + key.
template <typename Device, typename Places>
void SumRows(const Device& device, const RowGrid& grid, const Places& places, int64_t destinations,
             const TBlob& from, OpReqType req, const TBlob& to, void* scratch, const char* who) {
  detail::ScatterRuns<true>(device, grid, places, destinations, from, req, to, scratch, who);
}
template <typename Device, typename Places>
void LastRows(const Device& device, const RowGrid& grid, const Places& places, int64_t destinations,
              const TBlob& from, OpReqType req, const TBlob& to, void* scratch, const char* who) {
  detail::ScatterRuns<false>(device, grid, places, destinations, from, req, to, scratch, who);
}

}  // namespace mxtrain
