// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops over the elements of many arrays together. A GPU needs one kernel launch for dozens of
// arrays. Each array is divided into chunks. A chunk is a row (rows.h) whose team finds its array
// in a table that is passed with the functor as a kernel argument. If there are more arrays than a
// table holds, several tables run in turn. The CPU can run the same code.
//
//   struct Array {  // what the loop knows of an array
//     const float* x;
//     int64_t size;  // number of elements
//   };
//   ForTables<Array>(count, [&](size_t n) { return Array{...}; },
//                    [&](const ArrayTable<Array>& table) { ForChunks(device, table, f); });
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/rows.h"

namespace mxtrain {

inline constexpr int64_t kChunk = 8192;  // elements
inline int64_t ChunksOf(int64_t size) {
  return CeilDivide(size, kChunk);
}

template <typename Array>
struct ArrayTable {
  static constexpr size_t kBytes = 3584;  // CUDA has 4096 for all arguments of a kernel
  static constexpr int kMost =
      static_cast<int>((kBytes - 2 * sizeof(int64_t)) / (sizeof(Array) + sizeof(int64_t)));

  Array arrays[kMost];
  int64_t ends[kMost];  // chunks of arrays 0 .. this one, inclusive
  int64_t count = 0;
  int64_t first = 0;  // index of arrays[0] among all arrays of the loop

  int64_t chunks() const { return count == 0 ? 0 : ends[count - 1]; }
  MXTRAIN_HD int64_t Begin(int64_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  // The array that owns the chunk.
  MXTRAIN_HD int64_t Find(int64_t chunk) const {
    int64_t low = 0, high = count - 1;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (chunk < ends[middle]) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

// f(table) for tables of array_of(n), n = 0 .. count - 1.
template <typename Array, typename ArrayOf, typename F>
void ForTables(size_t count, const ArrayOf& array_of, const F& f) {
  constexpr auto kMost = static_cast<size_t>(ArrayTable<Array>::kMost);
  for (size_t first = 0; first < count; first += kMost) {
    ArrayTable<Array> table{};
    table.first = static_cast<int64_t>(first);
    int64_t chunks = 0;
    for (size_t n = first; n < std::min(count, first + kMost); ++n) {
      const Array array = array_of(n);
      chunks += ChunksOf(array.size);
      table.arrays[table.count] = array;
      table.ends[table.count++] = chunks;
    }
    f(table);
  }
}

// Elements [begin, end) of an array. `array`: its index among all arrays. `chunk`: the index of the
// element range in its table.
struct ArrayPart {
  int64_t array, chunk, begin, end;
};

namespace detail {

template <typename Array, typename F>
struct ChunkRow {
  ArrayTable<Array> table;
  F f;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t chunk) const {
    const int64_t i = table.Find(chunk), begin = (chunk - table.Begin(i)) * kChunk,
                  end = begin + kChunk;
    const Array array = table.arrays[i];
    f(team, array, ArrayPart{table.first + i, chunk, begin, end < array.size ? end : array.size});
  }
};

template <typename V, typename Terms>
struct SumChunk {
  Terms terms;
  V* parts;
  template <typename Team, typename Array>
  MXTRAIN_HD void operator()(const Team& team, const Array& array, const ArrayPart& part) const {
    const auto term = terms(array, part.array);
    V sum{};
    if constexpr (std::is_same_v<Team, SoloTeam> &&
                  requires { term.SumOf(part.begin, part.end); }) {
      sum = term.SumOf(part.begin, part.end);
    } else {
      for (int64_t k = part.begin + team.rank(); k < part.end; k += team.size())
        sum = sum + term(k);
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) parts[part.chunk] = sum;
  }
};
template <typename V, typename Array>
struct JoinChunks {
  ArrayTable<Array> table;
  const V* parts;
  OpReqType req;
  V* sums;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    V sum{};
    for (int64_t chunk = table.Begin(i) + team.rank(); chunk < table.ends[i]; chunk += team.size())
      sum = sum + parts[chunk];
    sum = team.Fold(sum, AddBoth{});
    V* to = sums + table.first + i;
    if (team.rank() == 0) *to = req == OpReqType::kAddTo ? *to + sum : sum;
  }
};

}  // namespace detail

// f(team, array, part) for every chunk of a table.
template <typename Device, typename Array, typename F>
void ForChunks(const Device& device, const ArrayTable<Array>& table, const F& f) {
  static_assert(sizeof(detail::ChunkRow<Array, F>) <= 4096 - sizeof(int64_t),
                "the functor exceeds the kernel argument limit");
  ForRows(device, table.chunks(), kChunk, detail::ChunkRow<Array, F>{table, f});
}

// sums[n] = or += the sum of term(k), of type V, over the elements of each array n of a table,
// where term = terms(array, n). On the CPU term.SumOf(begin, end), if there is one, adds the terms
// of a chunk. Partial sums go through parts[chunk], so the order of summation depends only on the
// sizes.
template <typename V, typename Device, typename Array, typename Terms>
void SumArrays(const Device& device, const ArrayTable<Array>& table, const Terms& terms, V* parts,
               OpReqType req, V* sums) {
  ForChunks(device, table, detail::SumChunk<V, Terms>{terms, parts});
  ForRows(device, table.count, table.chunks(),
          detail::JoinChunks<V, Array>{table, parts, req, sums});
}

}  // namespace mxtrain
