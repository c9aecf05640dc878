// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays that are repeated over a larger shape (broadcast), a block of the larger shape at a time.
#include <algorithm>
#include <cstring>

#include "mxtrain/operator/broadcast_space.h"
#include "mxtrain/operator/reduction.h"

namespace mxtrain::elementwise_chain {

// Elements [begin, begin + count) of the whole shape as runs:
//   body(offset, step, columns, rows): the next rows * columns elements belong to the elements
//   offset, offset + step, ..., offset + (columns - 1) step of the array, `rows` times in turn
template <typename Body>
void ForRuns(const BroadcastSpace<1>& space, int64_t begin, int64_t count, const Body& body) {
  const int last = space.ndim() - 1;
  const int64_t length = space.length(last), step = space.stride(last, 0);
  const bool repeats = last > 0 && space.stride(last - 1, 0) == 0;
  int64_t index[TShape::kMaxDims] = {}, rest = begin;
  for (int i = last; i >= 0; --i) {
    index[i] = i > 0 ? rest % space.length(i) : rest;
    rest /= space.length(i);
  }
  while (count > 0) {
    int64_t offset = 0;
    for (int i = 0; i <= last; ++i) offset += index[i] * space.stride(i, 0);
    int64_t columns = std::min(length - index[last], count), rows = 1;
    if (columns == length && repeats)
      rows = std::min(space.length(last - 1) - index[last - 1], count / length);
    body(offset, step, columns, rows);
    count -= columns * rows;
    index[last] += columns;
    if (index[last] < length) continue;
    index[last] = 0;
    int64_t carry = rows;
    for (int i = last - 1; i >= 0 && carry > 0; --i) {
      index[i] += carry;
      carry = index[i] >= space.length(i) ? 1 : 0;
      if (carry > 0) index[i] = 0;
    }
  }
}

// Copies elements [begin, begin + count) of the whole shape.
template <typename T>
void Gather(const BroadcastSpace<1>& space, const T* array, int64_t begin, int64_t count, T* to) {
  ForRuns(space, begin, count, [&](int64_t offset, int64_t step, int64_t columns, int64_t rows) {
    const T* from = array + offset;
    if (step == 0) {
      std::fill_n(to, columns * rows, *from);
    } else {
      std::copy_n(from, columns, to);
      // What is there is copied behind itself, twice as much each time.
      for (int64_t done = columns; done < columns * rows; done *= 2)
        std::copy_n(to, std::min(done, columns * rows - done), to + done);
    }
    to += columns * rows;
  });
}

// Adds the elements of a block of the whole shape to the sums of the elements that they repeat.
template <typename T>
void AddToSums(const BroadcastSpace<1>& space, const T* block, int64_t begin, int64_t count,
               double* sums) {
  ForRuns(space, begin, count, [&](int64_t offset, int64_t step, int64_t columns, int64_t rows) {
    if (step == 0) {
      sums[offset] += FoldRow<SumFold>(block, columns * rows);
    } else {
      mxtrain::detail::FoldInto<SumFold>(sums + offset, columns, rows, columns, SameValue{}, block);
    }
    block += columns * rows;
  });
}

}  // namespace mxtrain::elementwise_chain
