// SPDX-License-Identifier: Apache-2.0
#pragma once
// RNN: layers of recurrent cells over a sequence, as MXNet's operator of that name.
//
//   data [T, N, C], parameters [size], state [layers * directions, N, R]
//   lstm: state_cell [layers * directions, N, H]; use_sequence_length: sequence_length [N]
//   -> output [T, N, directions * R]; with state_outputs state_output and, lstm, statecell_output
//
// H = state_size; R = projection_size (lstm) or H. With a = W x_t + b_W + R h_(t-1) + b_R of each
// gate:
//   rnn_relu, rnn_tanh   h = max(a, 0), tanh(a)
//   lstm, gates i f g o  c = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c); with
//                        projection_size h = P sigmoid(o) tanh(c)
//   gru, gates r z n     n = tanh(W x_t + b_W + sigmoid(r) (R h_(t-1) + b_R)),
//                        h = (1 - sigmoid(z)) n + sigmoid(z) h_(t-1)
//
// `parameters` holds W [gates H, inputs], R [gates H, R] and, with projection_size, P [R, H] of
// layer 0 forward, layer 0 backward, layer 1 forward, ...; then b_W and b_R [gates H] in that
// order. Layers above the first have directions * R inputs. In a net, states that are not given are
// zeros.
//
// With use_sequence_length a sequence's steps from its length on do not count: they leave its state
// as it is, the output is zero there, and its backward direction begins at its last step. Lengths
// are read as those of SequenceMask.
//
// In training, elements of the output of every layer but the last are zero with probability p, else
// multiplied by 1 / (1 - p). A draw depends on the element's layer and place alone.
#include <optional>

#include "mxtrain/operator/property.h"
#include "mxtrain/operator/rnn_geometry.h"
#include "mxtrain/operator/zeros_if_missing.h"

namespace mxtrain::rnn {

struct RnnParam : Parameter<RnnParam> {
  int mode;
  int64_t state_size, num_layers;
  bool bidirectional, state_outputs, use_sequence_length, lstm_state_clip_nan;
  float p;
  std::optional<int64_t> projection_size;
  std::optional<double> lstm_state_clip_min, lstm_state_clip_max;
  static void Declare(Fields<RnnParam>& f);
};

class RnnProperty final : public PropertyWithParam<RnnParam>, public ZerosIfMissing {
 public:
  enum Argument { kData, kParameters, kState, kStateCell };
  enum Output { kOutput, kStateOutput, kStateCellOutput };

  std::string TypeString() const override { return "RNN"; }
  std::string Description() const override {
    return "recurrent layers over a sequence: rnn_relu, rnn_tanh, lstm or gru";
  }
  std::vector<std::string> ListArguments() const override;
  std::vector<std::string> ListOutputs() const override;
  bool IsZeroIfMissing(int argument) const override {
    return argument == kState || (argument == kStateCell && param_.mode == kLstm);
  }
  std::string DefaultInit(int argument) const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  bool HasGradient(int argument) const override { return argument != LengthsAt(); }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override;
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override;
  std::vector<ResourceRequest> BackwardResource(const std::vector<TShape>&) const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

  // Of data of this shape.
  MXTRAIN_API Geometry GeometryOf(const TShape& data) const;
  // The argument sequence_length; -1: there is none.
  int LengthsAt() const {
    if (!param_.use_sequence_length) return -1;
    return param_.mode == kLstm ? kStateCell + 1 : kStateCell;
  }

 protected:
  void Check() override;
};

}  // namespace mxtrain::rnn
