// SPDX-License-Identifier: Apache-2.0
#pragma once
// _FoldBatchNorm: weight and bias of a convolution or fully connected layer with the following
// BatchNorm folded in, for inference. weight' = weight * s per output channel, bias' = (bias -
// moving_mean) * s + beta, with s = gamma / sqrt(moving_var + eps). Created by the executor; arrays
// are plain, weight and bias have one type, the arrays of the BatchNorm one that may be wider, and
// nothing has a gradient.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct FoldBatchNormParam : Parameter<FoldBatchNormParam> {
  float eps;
  bool fix_gamma, no_bias;
  static void Declare(Fields<FoldBatchNormParam>& f);
};

class FoldBatchNormProperty final : public PropertyWithParam<FoldBatchNormParam> {
 public:
  std::string TypeString() const override { return "_FoldBatchNorm"; }
  std::string Description() const override {
    return "weight and bias with a BatchNorm folded in (created by the executor)";
  }
  std::vector<std::string> ListArguments() const override;
  std::vector<std::string> ListOutputs() const override { return {"weight", "bias"}; }
  bool HasGradient(int) const override { return false; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

}  // namespace mxtrain
