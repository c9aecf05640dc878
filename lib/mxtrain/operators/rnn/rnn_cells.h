// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cells of an RNN, element by element: what one hidden unit of one sequence does in one step.
// Every kernel computes with these functions. C, the type in which it computes, is float or double.
#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/rnn_geometry.h"
#include "mxtrain/operator/vector_math.h"

namespace mxtrain::rnn {

// Which steps of a sequence count.
struct Lengths {
  NumberReader reader;
  bool given = false;
  MXTRAIN_HD bool Counts(int64_t step, int64_t sequence) const {
    return !given || step < reader.Index(sequence);
  }
};

// One direction of a layer over all steps. States have a slot for each step and one for the initial
// state: step t reads slot From(t) and writes slot To(t). Rows of h and of gates may be longer than
// their elements, for the sake of the caches.
template <typename C>
struct Direction {
  Geometry g;
  Lengths lengths;
  bool backward = false;  // from the last step to the first
  // [steps, batch, gates hidden]: W x, from which forward makes the gates' activations. Those of
  // simple cells do not outlive the pass.
  C* gates = nullptr;
  int64_t gate_row = 0;
  C* recurrent = nullptr;  // gru: R h + b_R of gate n, [steps, batch, hidden]
  C* h = nullptr;          // [steps + 1, batch, output]
  int64_t h_row = 0;
  C* c = nullptr;     // lstm: [steps + 1, batch, hidden]
  C* full = nullptr;  // with projection: sigmoid(o) tanh(c), [steps, batch, hidden]
  const C *input_bias = nullptr, *recurrent_bias = nullptr;

  MXTRAIN_HD int64_t StepAt(int64_t k) const { return backward ? g.steps - 1 - k : k; }
  MXTRAIN_HD int64_t From(int64_t step) const { return backward ? step + 1 : step; }
  MXTRAIN_HD int64_t To(int64_t step) const { return backward ? step : step + 1; }
  MXTRAIN_HD int64_t FirstSlot() const { return backward ? g.steps : 0; }
  MXTRAIN_HD int64_t LastSlot() const { return backward ? 0 : g.steps; }
  MXTRAIN_HD C* H(int64_t slot, int64_t n = 0) const { return h + (slot * g.batch + n) * h_row; }
  MXTRAIN_HD C* CellState(int64_t slot, int64_t n = 0) const {
    return c + (slot * g.batch + n) * g.hidden;
  }
  MXTRAIN_HD C* Gates(int64_t step, int64_t n = 0) const {
    return gates + (step * g.batch + n) * gate_row;
  }
  MXTRAIN_HD int64_t UnitsBefore(int64_t step, int64_t n = 0) const {
    return (step * g.batch + n) * g.hidden;
  }
};

// A sequence in a step of the forward pass; unit u of gate k is at k * hidden + u. Products are
// those of a block of units: `at` is the unit's place in it.
template <typename C>
struct ForwardRow {
  int64_t hidden;
  bool counts;
  C* gates;
  const C* product;  // R h, of gate k at k * product_step + at
  int64_t product_step;
  const C *input_bias, *recurrent_bias;
  const C *h_before, *c_before;
  C *h, *c, *recurrent;  // h: with projection the array `full`

  MXTRAIN_HD ForwardRow(const Direction<C>& d, int64_t step, int64_t n, const C* of_row,
                        int64_t of_gate)
      : hidden(d.g.hidden),
        counts(d.lengths.Counts(step, n)),
        gates(d.Gates(step, n)),
        product(of_row),
        product_step(of_gate),
        input_bias(d.input_bias),
        recurrent_bias(d.recurrent_bias),
        h_before(d.H(d.From(step), n)),
        c_before(d.c ? d.CellState(d.From(step), n) : nullptr),
        h(d.full ? d.full + d.UnitsBefore(step, n) : d.H(d.To(step), n)),
        c(d.c ? d.CellState(d.To(step), n) : nullptr),
        recurrent(d.recurrent ? d.recurrent + d.UnitsBefore(step, n) : nullptr) {}

  [[gnu::always_inline]] MXTRAIN_HD C Input(int64_t k, int64_t u) const {
    return gates[k * hidden + u] + input_bias[k * hidden + u];
  }
  [[gnu::always_inline]] MXTRAIN_HD C Recurrent(int64_t k, int64_t u, int64_t at) const {
    return product[k * product_step + at] + recurrent_bias[k * hidden + u];
  }

  // The step of a sequence where it counts.
  template <int kMode>
  [[gnu::always_inline]] MXTRAIN_HD void Step(int64_t u, int64_t at) const {
    if constexpr (kMode == kRelu || kMode == kTanh) {
      const C a = Input(0, u) + Recurrent(0, u, at);
      if constexpr (kMode == kRelu) {
        h[u] = a < 0 ? C(0) : a;
      } else {
        h[u] = vector_math::Tanh(a);
      }
    } else if constexpr (kMode == kLstm) {
      const C i = vector_math::Sigmoid(Input(0, u) + Recurrent(0, u, at)),
              f = vector_math::Sigmoid(Input(1, u) + Recurrent(1, u, at)),
              g = vector_math::Tanh(Input(2, u) + Recurrent(2, u, at)),
              o = vector_math::Sigmoid(Input(3, u) + Recurrent(3, u, at));
      const C cell = f * c_before[u] + i * g;
      gates[u] = i, gates[hidden + u] = f, gates[2 * hidden + u] = g, gates[3 * hidden + u] = o;
      c[u] = cell;
      h[u] = o * vector_math::Tanh(cell);
    } else {
      const C r = vector_math::Sigmoid(Input(0, u) + Recurrent(0, u, at)),
              z = vector_math::Sigmoid(Input(1, u) + Recurrent(1, u, at)),
              of_h = Recurrent(2, u, at), n = vector_math::Tanh(Input(2, u) + r * of_h);
      gates[u] = r, gates[hidden + u] = z, gates[2 * hidden + u] = n;
      recurrent[u] = of_h;
      h[u] = (C(1) - z) * n + z * h_before[u];
    }
  }
  // Where it does not: the states stay. Backward does not read the gates then.
  template <int kMode>
  [[gnu::always_inline]] MXTRAIN_HD void Skip(int64_t u, bool projects) const {
    h[u] = projects ? C(0) : h_before[u];
    if constexpr (kMode == kLstm) c[u] = c_before[u];
  }
};

// What backward keeps of a direction besides. Arrays of gradients are as those of their values.
template <typename C>
struct DirectionGradient {
  C* gates = nullptr;      // of W x + b_W, [steps, batch, gates hidden], rows as the gates
  C* recurrent = nullptr;  // of R h + b_R; gates, except for gru
  C* total = nullptr;      // with projection: of h, [steps, batch, output]
  C* h = nullptr;          // [batch, output]: what reaches the earlier state past the products
  C* c = nullptr;          // lstm: of the earlier cell state, [batch, hidden]
  // The head gradient of element u of a row is at head + row * head_row + u.
  const C* head = nullptr;
  int64_t head_row = 0;
};

// A sequence in a step of the backward pass. With projection the head gradient, the carry and the
// product are of the projections (Total), and `product` here is the gradient of the hidden units.
template <typename C>
struct BackwardRow {
  int64_t hidden;
  bool counts;
  const C *gates, *h, *h_before, *c, *c_before, *of_h;
  const C *product, *head;
  C *to_gates, *to_recurrent, *carry, *cell;

  MXTRAIN_HD BackwardRow(const Direction<C>& d, const DirectionGradient<C>& to, int64_t step,
                         int64_t n, const C* of_row)
      : hidden(d.g.hidden),
        counts(d.lengths.Counts(step, n)),
        gates(d.gates ? d.Gates(step, n) : nullptr),
        h(d.H(d.To(step), n)),
        h_before(d.H(d.From(step), n)),
        c(d.c ? d.CellState(d.To(step), n) : nullptr),
        c_before(d.c ? d.CellState(d.From(step), n) : nullptr),
        of_h(d.recurrent ? d.recurrent + d.UnitsBefore(step, n) : nullptr),
        product(of_row),
        head(to.head + (step * d.g.batch + n) * to.head_row),
        to_gates(to.gates + (step * d.g.batch + n) * d.gate_row),
        to_recurrent(to.recurrent + (step * d.g.batch + n) * d.gate_row),
        carry(to.h + n * d.g.output),
        cell(to.c ? to.c + n * d.g.hidden : nullptr) {}

  template <int kMode, bool kProjects>
  [[gnu::always_inline]] MXTRAIN_HD void Step(int64_t u, int64_t at) const {
    C total = product[at];
    if constexpr (!kProjects) total += carry[u] + head[u];
    C rest = 0;  // of the carry
    if constexpr (kMode == kRelu) {
      to_gates[u] = h[u] > 0 ? total : C(0);
    } else if constexpr (kMode == kTanh) {
      to_gates[u] = total * (C(1) - h[u] * h[u]);
    } else if constexpr (kMode == kLstm) {
      const C i = gates[u], f = gates[hidden + u], g = gates[2 * hidden + u],
              o = gates[3 * hidden + u], t = vector_math::Tanh(c[u]),
              of_cell = cell[u] + total * o * (C(1) - t * t);
      to_gates[u] = of_cell * g * i * (C(1) - i);
      to_gates[hidden + u] = of_cell * c_before[u] * f * (C(1) - f);
      to_gates[2 * hidden + u] = of_cell * i * (C(1) - g * g);
      to_gates[3 * hidden + u] = total * t * o * (C(1) - o);
      cell[u] = of_cell * f;
    } else {
      const C r = gates[u], z = gates[hidden + u], n = gates[2 * hidden + u],
              of_n = total * (C(1) - z) * (C(1) - n * n), of_r = of_n * of_h[u] * r * (C(1) - r),
              of_z = total * (h_before[u] - n) * z * (C(1) - z);
      to_gates[u] = of_r, to_gates[hidden + u] = of_z, to_gates[2 * hidden + u] = of_n;
      to_recurrent[u] = of_r, to_recurrent[hidden + u] = of_z;
      to_recurrent[2 * hidden + u] = of_n * r;
      rest = total * z;
    }
    if constexpr (!kProjects) carry[u] = rest;
  }
  template <int kMode, bool kProjects>
  [[gnu::always_inline]] MXTRAIN_HD void Skip(int64_t u, int64_t at) const {
    for (int64_t k = 0; k < GatesOf(kMode); ++k) {
      to_gates[k * hidden + u] = 0;
      if constexpr (kMode == kGru) to_recurrent[k * hidden + u] = 0;
    }
    if constexpr (!kProjects) carry[u] += product[at];
  }
};

}  // namespace mxtrain::rnn
