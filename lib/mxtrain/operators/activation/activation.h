// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activation: an element-wise function. Gradients are computed from the output, so forward may run
// in place. The exception is softsign, whose gradient is computed from the input: for large
// elements the output has lost the digits it needs.
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum ActivationType : int { kReLU, kSigmoid, kTanh, kSoftReLU, kSoftSign };

struct ActivationParam : Parameter<ActivationParam> {
  int act_type;
  static void Declare(Fields<ActivationParam>& f) {
    f.Add("act_type", &ActivationParam::act_type)
        .Enum({{"relu", kReLU},
               {"sigmoid", kSigmoid},
               {"tanh", kTanh},
               {"softrelu", kSoftReLU},
               {"softsign", kSoftSign}})
        .Required()
        .Help(
            "relu: max(x, 0); sigmoid: 1 / (1 + e^-x); softrelu: log(1 + e^x); softsign: x / (1 + "
            "|x|)");
  }
};

class ActivationProperty final : public PropertyWithParam<ActivationParam> {
 public:
  std::string TypeString() const override { return "Activation"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string Description() const override {
    return "applies an activation function to every element";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override {
    return {out_grad[0], param_.act_type == kSoftSign ? in_data[0] : out_data[0]};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
  Elementwise elementwise() const override {
    return param_.act_type != kSigmoid && param_.act_type != kSoftReLU ? Elementwise::kZeroToZero
                                                                       : Elementwise::kYes;
  }
};

}  // namespace mxtrain
