// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of an RNN: what forward keeps for backward, and what each pass works in.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/operators/rnn/rnn_cells.h"

namespace mxtrain::rnn {

// Hands out parts of a block of memory. Without a block it counts.
template <typename C>
class Space {
 public:
  explicit Space(void* at = nullptr) : at_(static_cast<C*>(at)) {}
  C* Take(int64_t n) {
    C* const result = at_ ? at_ + taken_ : nullptr;
    taken_ += RoundUp(n, kStep);
    return result;
  }
  C* TakeIf(bool wanted, int64_t n) { return wanted ? Take(n) : nullptr; }
  int64_t taken() const { return taken_; }
  int64_t bytes() const { return taken_ * static_cast<int64_t>(sizeof(C)); }

 private:
  static constexpr int64_t kStep = 64 / sizeof(C);
  C* at_;
  int64_t taken_ = 0;
};

// Elements behind an array that kernels read, but do not use.
inline constexpr int64_t kReadAhead = 16;

// What a plan decided.
struct Setup {
  Geometry g;
  bool has_lengths = false, drops = false, converts = false;  // converts: computes in another type
  bool saves = false;                                         // a backward pass follows
  float keep = 1;                                             // of dropout
  int64_t h_row = 0, gate_row = 0;                            // see Direction
  int64_t forward_scratch = 0, backward_scratch = 0;          // of the products, in elements

  int64_t h_size() const { return g.batch * h_row; }
  int64_t cell_size() const { return g.batch * g.hidden; }
  // Whether the input of a layer above the first is an array of its own, not the states below.
  bool copies_inputs() const { return g.directions > 1 || has_lengths || drops; }
  bool keeps_gates() const { return saves && g.gates() > 1; }
  int64_t gate_size() const { return g.rows() * gate_row + kReadAhead; }
};

// What forward computes of a layer.
template <typename C>
struct LayerSpace {
  C* input = nullptr;  // [rows, inputs]; null: data, or the states of the layer below
  Direction<C> directions[2];

  // `common`: for gates that nobody keeps.
  LayerSpace(const Setup& s, int64_t layer, C* common, Space<C>* at) {
    const Geometry& g = s.g;
    input = layer == 0 ? at->TakeIf(s.converts, g.rows() * g.inputs)
                       : at->TakeIf(s.copies_inputs(), g.rows() * g.width());
    for (int64_t d = 0; d < g.directions; ++d) {
      Direction<C>& to = directions[d];
      to.g = g;
      to.backward = d == 1;
      to.gate_row = s.gate_row;
      to.h_row = s.h_row;
      to.gates = s.keeps_gates() ? at->Take(s.gate_size()) : common;
      to.recurrent = at->TakeIf(g.mode == kGru, g.steps * s.cell_size());
      to.h = at->Take((g.steps + 1) * s.h_size() + kReadAhead);
      to.c = at->TakeIf(g.mode == kLstm, (g.steps + 1) * s.cell_size());
      to.full = at->TakeIf(g.projects, g.steps * s.cell_size() + kReadAhead);
    }
  }
};

// What forward computes. Without a backward pass the layers take turns in two places, since a layer
// reads the one below.
template <typename C>
class ForwardSpace {
 public:
  ForwardSpace(const Setup& s, Space<C>* saved, Space<C>* work) : s_(s) {
    common_ = work->TakeIf(!s.keeps_gates(), s.gate_size());
    first_ = SizeOf(0), upper_ = SizeOf(1);
    layers_ = s.saves ? saved->Take(first_ + (s.g.layers - 1) * upper_)
                      : work->Take(2 * std::max(first_, upper_));
  }
  LayerSpace<C> At(int64_t layer) const {
    const int64_t start = !s_.saves    ? layer % 2 * std::max(first_, upper_)
                          : layer == 0 ? 0
                                       : first_ + (layer - 1) * upper_;
    Space<C> at(layers_ + start);
    return LayerSpace<C>(s_, layer, common_, &at);
  }

 private:
  int64_t SizeOf(int64_t layer) const {
    Space<C> at;
    LayerSpace<C>(s_, layer, nullptr, &at);
    return at.taken();
  }

  const Setup& s_;
  int64_t first_, upper_;
  C *common_, *layers_;
};

template <typename C>
struct BackwardSpace {
  DirectionGradient<C> to;  // of the direction that is differentiated
  C* heads[2] = {};         // of the outputs of layers, by turns, [rows, directions output]
  C* data = nullptr;        // of converted data
  C* parameters = nullptr;  // of converted parameters

  BackwardSpace(const Setup& s, Space<C>* work) {
    const Geometry& g = s.g;
    to.gates = work->Take(s.gate_size());
    to.recurrent = g.mode == kGru ? work->Take(s.gate_size()) : to.gates;
    to.total = work->TakeIf(g.projects, g.rows() * g.output + kReadAhead);
    to.h = work->Take(g.batch * g.output);
    to.c = work->TakeIf(g.mode == kLstm, s.cell_size());
    for (int i = 0; i < 2; ++i)
      heads[i] = work->TakeIf(g.layers > 1 || (s.converts && i == 0), g.rows() * g.width());
    data = work->TakeIf(s.converts, g.rows() * g.inputs);
    parameters = work->TakeIf(s.converts, g.ParameterCount());
  }
};

}  // namespace mxtrain::rnn
