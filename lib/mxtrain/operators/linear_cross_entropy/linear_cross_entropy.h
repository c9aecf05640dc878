// SPDX-License-Identifier: Apache-2.0
#pragma once
// linear_cross_entropy(data, weight, label[, bias]): the loss of a FullyConnected layer followed by
// SoftmaxOutput, without an array of all scores. A loss, whose Backward reads no head gradient.
//
//   scores = data weight^T + bias          [rows, classes], a block of rows at a time
//   output = -log softmax(scores)[label]   [rows]
//
// data [..., width], the rows of which are all axes but the last; weight [classes, width]; bias
// [classes]; label and output [...]. The output is the loss of each row, 0 where the label is no
// class, whether the label is ignored or not. The gradient is the one of SoftmaxOutput with
// preserve_shape: softmax - one-hot, times grad_scale over the divisor of `normalization`, and 0 in
// rows that are ignored.
//
// Of bfloat16 data and weight, the output, label, bias, and the gradients of weight and bias are
// float32.
//
// The kernel on the CPU computes the gradients in forward, while a block of scores is there, and
// saves them without that factor. (Recomputing the scores in backward would save the memory of the
// weight's gradient for a third more work.) Elsewhere the operator is the graph that it means.
#include <optional>

#include "mxtrain/operator/property.h"
#include "mxtrain/operators/softmax_output/softmax_output.h"

namespace mxtrain {

struct LinearCrossEntropyParam : Parameter<LinearCrossEntropyParam> {
  int64_t num_hidden;
  bool no_bias, use_ignore;
  float grad_scale, ignore_label;
  int normalization;
  std::optional<int64_t> block_rows;
  static void Declare(Fields<LinearCrossEntropyParam>& f);

  // Of the SoftmaxOutput that has the same gradient.
  SoftmaxOutputParam Softmax() const;
};

// Smaller ones count as this, as in reports of the loss of SoftmaxOutput.
inline constexpr double kLeastProbability = 1e-30;

class LinearCrossEntropyProperty final : public PropertyWithParam<LinearCrossEntropyParam> {
 public:
  enum Argument { kData, kWeight, kLabel, kBias };

  std::string TypeString() const override { return "linear_cross_entropy"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kGains, 2}; }
  std::string Description() const override {
    return "cross entropy of the softmax of a matrix product, for many classes: a loss that keeps "
           "no "
           "array of scores";
  }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  bool HasGradient(int argument) const override { return argument != kLabel; }
  bool Lower(Lowering* graph) const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;
};

}  // namespace mxtrain
