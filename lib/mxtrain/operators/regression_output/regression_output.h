// SPDX-License-Identifier: Apache-2.0
#pragma once
// Heads for regression: LinearRegressionOutput (squared error), LogisticRegressionOutput
// (cross-entropy of a sigmoid), MAERegressionOutput (absolute error). Forward returns the
// prediction. Backward returns grad_scale / (label numbers per sample) times the derivative of the
// loss and ignores the head gradient. It is not divided by the batch size.
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum class RegressionKind { kLinear, kLogistic, kAbsolute };

struct RegressionOutputParam : Parameter<RegressionOutputParam> {
  float grad_scale;
  static void Declare(Fields<RegressionOutputParam>& f) {
    f.Add("grad_scale", &RegressionOutputParam::grad_scale)
        .Default(1)
        .Help("factor of the gradient");
  }
};

class RegressionOutputProperty final : public PropertyWithParam<RegressionOutputParam> {
 public:
  explicit RegressionOutputProperty(RegressionKind kind) : kind_(kind) {}
  RegressionKind kind() const { return kind_; }

  std::string TypeString() const override;
  std::string Description() const override;
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
  std::vector<InplacePair> ForwardIdentityOption() const override {
    return kind_ == RegressionKind::kLogistic ? std::vector<InplacePair>{}
                                              : std::vector<InplacePair>{{0, 0}};
  }

 private:
  RegressionKind kind_;
};

}  // namespace mxtrain
