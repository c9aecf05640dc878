// SPDX-License-Identifier: Apache-2.0
#pragma once
// ctc_greedy_decoder: what a net that CTCLoss trains says. The path of the most probable class of
// each step, without its repetitions, and then without its blanks.
//
//   data [T, N, C] [, data_lengths [N]]  ->  output [N, T, 2]
//
// A row of the output is a label: its class, and the largest of its probabilities (softmax of the
// data) over the steps that it was said at. Rows of -1 follow the last one. Of equal scores the
// first class is taken. The blank, and lengths, are as in CTCLoss. Without a gradient: it is zero.
#include "mxtrain/operator/no_gradient.h"
#include "mxtrain/operators/ctc_loss/ctc_loss.h"

namespace mxtrain {

struct CtcGreedyDecoderParam : Parameter<CtcGreedyDecoderParam> {
  bool use_data_lengths;
  int blank_label;
  static void Declare(Fields<CtcGreedyDecoderParam>& f) {
    DeclareDataLengths(f);
    DeclareBlankLabel(f);
  }
};

class CtcGreedyDecoderProperty final : public PropertyWithoutGradient<CtcGreedyDecoderParam> {
 public:
  std::string TypeString() const override { return "ctc_greedy_decoder"; }
  std::string Description() const override {
    return "the sequence of labels that a net trained by CTCLoss says, and their probabilities";
  }
  std::vector<std::string> ListArguments() const override {
    if (!param_.use_data_lengths) return {"data"};
    return {"data", "data_lengths"};
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
};

}  // namespace mxtrain
