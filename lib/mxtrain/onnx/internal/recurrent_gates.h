// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ONNX's RNN, LSTM and GRU are called here, and the order of their gates. Private to onnx.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/operator/rnn_geometry.h"

namespace mxtrain::onnx {

inline constexpr const char* kRecurrentModes[] = {"rnn_relu", "rnn_tanh", "lstm", "gru"};

// A value of the parameter `mode` of the operator RNN.
inline int RecurrentModeOf(std::string_view mode) {
  for (int i = 0; i < 4; ++i) {
    if (mode == kRecurrentModes[i]) return i;
  }
  Throw(ErrorKind::kBug, "RNN has no mode '{}'", mode);
}
inline const char* OperatorOf(int mode) {
  return mode == rnn::kLstm ? "LSTM" : mode == rnn::kGru ? "GRU" : "RNN";
}
// Of ONNX's RNN; the others' are their defaults.
inline std::string ActivationOf(int mode) {
  return mode == rnn::kRelu ? "Relu" : mode == rnn::kTanh ? "Tanh" : "";
}
// For each gate of ONNX (i o f c of an LSTM, z r h of a GRU) its number here (i f g o, r z n).
inline std::vector<int64_t> OurGates(int mode) {
  if (mode == rnn::kLstm) return {0, 3, 1, 2};
  if (mode == rnn::kGru) return {1, 0, 2};
  return {0};
}

}  // namespace mxtrain::onnx
