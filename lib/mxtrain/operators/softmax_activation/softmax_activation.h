// SPDX-License-Identifier: Apache-2.0
#pragma once
// SoftmaxActivation: the softmax function with its true gradient (SoftmaxOutput is the loss).
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum SoftmaxActivationMode : int { kSoftmaxInstance, kSoftmaxChannel };

struct SoftmaxActivationParam : Parameter<SoftmaxActivationParam> {
  int mode;
  static void Declare(Fields<SoftmaxActivationParam>& f) {
    f.Add("mode", &SoftmaxActivationParam::mode)
        .Enum({{"instance", kSoftmaxInstance}, {"channel", kSoftmaxChannel}})
        .Default(kSoftmaxInstance)
        .Help("instance: over all elements of a sample; channel: over axis 1, for every position");
  }
};

class SoftmaxActivationProperty final : public PropertyWithParam<SoftmaxActivationParam> {
 public:
  std::string TypeString() const override { return "SoftmaxActivation"; }
  std::string Description() const override {
    return "the softmax function over a sample or over its channels";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>& out_data) const override {
    return {out_grad[0], out_data[0]};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
};

}  // namespace mxtrain
