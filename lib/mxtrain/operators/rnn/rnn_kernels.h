// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vectorized loops of RNN. A right factor is packed into panels: the columns of one vector
// (`lanes`), [inner, lanes], zeros behind the last column; so every load of a product's inner loop
// is the next one in memory. A step multiplies and applies the cells block by block, while the
// products are in the caches.
#include "mxtrain/device/matrix_view.h"
#include "mxtrain/operators/rnn/rnn_cells.h"

namespace mxtrain::rnn {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// c = a b, or += a b; `b` as panels.
template <typename C>
struct PackedProduct {
  int64_t rows = 0, columns = 0, inner = 0;
  const C* a = nullptr;
  int64_t a_row = 0;  // the distance of its rows, whose elements are contiguous; 0: packed by tiles
  const C* b = nullptr;
  C* c = nullptr;
  int64_t c_row = 0;
  bool add = false;
};

template <typename C>
struct Kernels {
  int64_t lanes, tile_rows;

  // The panels `vectors` of b; the first is written at `to`.
  void (*pack_panels)(const C* b, const MatrixView& view, Range vectors, C* to);
  // Tiles of tile_rows rows of a, [inner, tile_rows] each.
  void (*pack_rows)(const C* a, const MatrixView& view, C* to);
  void (*multiply)(const PackedProduct<C>& product);

  // The following are for the sequences `rows` and the units in the vectors `units`; panels are
  // those of all units. Of R: of unit vector v and gate k, number v * gates + k.
  void (*forward)(const Direction<C>& d, int64_t step, const C* panels, Range rows, Range units);
  // The states from `full`; panels of P.
  void (*project)(const Direction<C>& d, int64_t step, const C* panels, Range rows, Range units);
  // `later`: the step that backward has done before, whose gates pass on their gradients by R; -1:
  // none. Panels of R as a right factor [gates hidden, output].
  void (*backward)(const Direction<C>& d, const DirectionGradient<C>& to, int64_t step,
                   int64_t later, const C* panels, Range rows, Range units);
  // With projection: `total`, then backward by it; panels of R and of P [output, hidden].
  void (*add_total)(const Direction<C>& d, const DirectionGradient<C>& to, int64_t step,
                    int64_t later, const C* panels, Range rows, Range units);
  void (*backward_projected)(const Direction<C>& d, const DirectionGradient<C>& to, int64_t step,
                             const C* panels, Range rows, Range units);
  // The gradient of the initial state, from that of the first step's gates.
  void (*finish)(const Direction<C>& d, const DirectionGradient<C>& to, const C* panels, Range rows,
                 Range units);
};

// For the best instruction set of the machine; C: float, double.
template <typename C>
const Kernels<C>& KernelsOf();

}  // namespace mxtrain::rnn
