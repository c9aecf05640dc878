// SPDX-License-Identifier: Apache-2.0
#pragma once
// SVMOutput: a head for classification with hinge losses. Forward returns the scores, data [N, K].
// With labels [N] the gradient of a score x, whatever the head gradient, is
//
//   squared hinge, the label's class:  -2 r max(0, margin - x)
//   squared hinge, the others:          2 r max(0, margin + x)
//   use_linear, the label's class:     -r if x < margin
//   use_linear, the others:             r if x > -margin
//
// where r = regularization_coefficient. It is not divided by the batch size.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct SvmOutputParam : Parameter<SvmOutputParam> {
  float margin, regularization_coefficient;
  bool use_linear;
  static void Declare(Fields<SvmOutputParam>& f) {
    f.Add("margin", &SvmOutputParam::margin).Default(1).Help("distance of a right score from 0");
    f.Add("regularization_coefficient", &SvmOutputParam::regularization_coefficient)
        .Default(1)
        .Help("factor of the gradient");
    f.Add("use_linear", &SvmOutputParam::use_linear)
        .Default(false)
        .Help("the hinge loss instead of its square");
  }
};

class SvmOutputProperty final : public PropertyWithParam<SvmOutputParam> {
 public:
  std::string TypeString() const override { return "SVMOutput"; }
  std::string Description() const override {
    return "the identity with the gradient of the (squared) hinge loss";
  }
  std::vector<std::string> ListArguments() const override { return {"data", "label"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override {
    return {in_data[1], out_data[0]};
  }
  bool HasGradient(int argument) const override { return argument == 0; }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> ForwardIdentityOption() const override { return {{0, 0}}; }
};

}  // namespace mxtrain
