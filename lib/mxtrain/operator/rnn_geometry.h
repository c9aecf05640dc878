// SPDX-License-Identifier: Apache-2.0
#pragma once
// The extents of the operator RNN, and where the arrays of its layers are in `parameters`. For the
// operator, and for what takes these arrays apart, such as ONNX.
#include <cstdint>

#include "mxtrain/base/macros.h"

namespace mxtrain::rnn {

enum Mode : int { kRelu, kTanh, kLstm, kGru };

MXTRAIN_HD constexpr int64_t GatesOf(int mode) {
  return mode == kLstm ? 4 : mode == kGru ? 3 : 1;
}

struct Geometry {
  int mode = kLstm;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  int64_t output = 0;  // of a direction: the hidden units, or their projections
  int64_t layers = 1, directions = 1;
  bool projects = false;

  MXTRAIN_HD int64_t gates() const { return GatesOf(mode); }
  MXTRAIN_HD int64_t rows() const { return steps * batch; }  // of the arrays of all steps
  MXTRAIN_HD int64_t gate_columns() const {
    return gates() * hidden;
  }  // of the activations of a direction
  MXTRAIN_HD int64_t width() const { return directions * output; }  // of a layer's output
  int64_t InputsOf(int64_t layer) const { return layer == 0 ? inputs : width(); }

  // Elements of W, R and P of a direction.
  int64_t WeightsOf(int64_t layer) const {
    return gate_columns() * (InputsOf(layer) + output) + (projects ? output * hidden : 0);
  }
  int64_t biases() const { return 2 * gate_columns(); }  // of a direction

  // Offsets in `parameters`.
  int64_t InputWeights(int64_t layer, int64_t direction) const {
    const int64_t before =
        layer == 0 ? 0 : directions * (WeightsOf(0) + (layer - 1) * WeightsOf(1));
    return before + direction * WeightsOf(layer);
  }
  int64_t RecurrentWeights(int64_t layer, int64_t direction) const {
    return InputWeights(layer, direction) + gate_columns() * InputsOf(layer);
  }
  int64_t ProjectionWeights(int64_t layer, int64_t direction) const {
    return RecurrentWeights(layer, direction) + gate_columns() * output;
  }
  int64_t InputBias(int64_t layer, int64_t direction) const {
    return InputWeights(layers, 0) + (layer * directions + direction) * biases();
  }
  int64_t RecurrentBias(int64_t layer, int64_t direction) const {
    return InputBias(layer, direction) + gate_columns();
  }
  int64_t ParameterCount() const { return InputBias(layers, 0); }
};

}  // namespace mxtrain::rnn
