// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two operators that mark their input as a loss: MakeLoss with a scaled constant gradient, and
// make_loss with a gradient of ones. Both ignore head gradients.
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum MakeLossNormalization : int { kMakeLossNull, kMakeLossBatch, kMakeLossValid };

struct MakeLossParam : Parameter<MakeLossParam> {
  float grad_scale, valid_thresh;
  int normalization;
  static void Declare(Fields<MakeLossParam>& f) {
    f.Add("grad_scale", &MakeLossParam::grad_scale).Default(1).Help("gradient of every element");
    f.Add("valid_thresh", &MakeLossParam::valid_thresh)
        .Default(0)
        .Help("with normalization valid, elements above it are counted");
    f.Add("normalization", &MakeLossParam::normalization)
        .Enum({{"null", kMakeLossNull}, {"batch", kMakeLossBatch}, {"valid", kMakeLossValid}})
        .Default(kMakeLossNull)
        .Help(
            "divisor of the gradient: 1, the batch size, the number of elements above valid_thresh "
            "(at least 1)");
  }
};

class MakeLossProperty final : public PropertyWithParam<MakeLossParam> {
 public:
  std::string TypeString() const override { return "MakeLoss"; }
  std::string Description() const override {
    return "marks its input as a loss; the gradient is a constant";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return param_.normalization == kMakeLossValid ? in_data : std::vector<int>{};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> ForwardIdentityOption() const override { return {{0, 0}}; }
};

class MakeLossOfOnesProperty final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "make_loss"; }
  std::string Description() const override {
    return "marks its input as a loss; the gradient is one";
  }
  std::vector<std::string> ListOutputs() const override { return {"loss"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> ForwardIdentityOption() const override { return {{0, 0}}; }
};

}  // namespace mxtrain
