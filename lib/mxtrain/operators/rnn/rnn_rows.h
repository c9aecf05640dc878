// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an RNN does to whole arrays beside products and cells: copies, masks, dropout, sums.
#include <algorithm>

#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/uniform_block.h"
#include "mxtrain/operators/rnn/rnn_cells.h"

namespace mxtrain::rnn {

template <typename To, typename From>
struct CopyRow {
  const From* from;
  int64_t from_row;
  To* to;
  int64_t to_row, length;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const From* const source = from + row * from_row;
    To* const target = to + row * to_row;
    for (int64_t k = team.rank(); k < length; k += team.size())
      Assign(req, target, k, static_cast<AccumulatorOf<To>>(source[k]));
  }
};
// Rows of `length` elements at distances of from_row and to_row, honouring the request.
template <typename To, typename From, typename Device>
void CopyRows(const Device& device, int64_t rows, int64_t length, const From* from,
              int64_t from_row, OpReqType req, To* to, int64_t to_row) {
  if (req == OpReqType::kNullOp) return;
  ForRows(device, rows, length, CopyRow<To, From>{from, from_row, to, to_row, length, req});
}
// An array without gaps.
template <typename To, typename From, typename Device>
void CopyAll(const Device& device, int64_t n, const From* from, OpReqType req, To* to) {
  constexpr int64_t kRow = 1024;
  CopyRows(device, n / kRow, kRow, from, kRow, req, to, kRow);
  const int64_t done = n / kRow * kRow;
  if (done < n) CopyRows(device, 1, n - done, from + done, n, req, to + done, n);
}

template <typename C>
struct ZeroRow {
  C* to;
  int64_t length;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    for (int64_t k = team.rank(); k < length; k += team.size()) to[row * length + k] = 0;
  }
};
template <typename C, typename Device>
void ZeroRows(const Device& device, int64_t rows, int64_t length, C* to) {
  ForRows(device, rows, length, ZeroRow<C>{to, length});
}

// The output of a direction in a step of a sequence: zero where the step does not count.
template <typename To, typename C>
struct OutputRow {
  Direction<C> d;
  To* to;
  int64_t to_row;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const int64_t step = row / d.g.batch, n = row % d.g.batch;
    const bool counts = d.lengths.Counts(step, n);
    const C* const from = d.H(d.To(step), n);
    To* const target = to + row * to_row;
    for (int64_t k = team.rank(); k < d.g.output; k += team.size())
      Assign(req, target, k, counts ? from[k] : C(0));
  }
};
// to [rows, width]: the columns of direction number `index`.
template <typename To, typename C, typename Device>
void PutOutput(const Device& device, const Direction<C>& d, int64_t index, OpReqType req, To* to) {
  if (req == OpReqType::kNullOp || d.g.rows() == 0) return;
  ForRows(device, d.g.rows(), d.g.output,
          OutputRow<To, C>{d, to + index * d.g.output, d.g.width(), req});
}

// Dropout of n elements in place; the draw of element i is the number first + i.
struct Drop {
  float keep;
  RandomDraws draws;
  uint64_t first;  // a multiple of kUniformBlock
};
template <typename C>
struct DropElement {
  Drop drop;
  C* x;
  MXTRAIN_HD void operator()(int64_t i) const {
    const bool kept = drop.draws.Uniform(drop.first + static_cast<uint64_t>(i)) < drop.keep;
    x[i] = kept ? x[i] * (C(1) / C(drop.keep)) : C(0);
  }
};
template <typename C, typename Device>
void DropElements(const Device& device, const Drop& drop, int64_t n, C* x) {
  Launch(device, n, DropElement<C>{drop, x});
}
template <typename C>
void DropElements(const OnCpu&, const Drop& drop, int64_t n, C* x) {
  ParallelFor(CeilDivide(n, kUniformBlock), kParallelGrain / kUniformBlock,
              [&](int64_t begin, int64_t end) {
                float draws[kUniformBlock];
                const C kept = C(1) / C(drop.keep);
                for (int64_t at = begin * kUniformBlock; at < std::min(end * kUniformBlock, n);
                     at += kUniformBlock) {
                  FillUniform(drop.draws, drop.first + static_cast<uint64_t>(at), draws);
                  const int64_t count = std::min(kUniformBlock, n - at);
                  for (int64_t k = 0; k < count; ++k)
                    x[at + k] = draws[k] < drop.keep ? x[at + k] * kept : C(0);
                }
              });
}

}  // namespace mxtrain::rnn
