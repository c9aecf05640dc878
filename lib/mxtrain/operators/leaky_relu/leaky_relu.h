// SPDX-License-Identifier: Apache-2.0
#pragma once
// LeakyReLU: x for positive x; otherwise by act_type:
//   leaky  slope x
//   elu    slope (e^x - 1)
//   prelu  gamma x, gamma learned per channel (second input, [C], [1] or broadcast to the data)
//   rrelu  s x, s uniform in [lower_bound, upper_bound] per element in training, their mean in
//          evaluation; second output `mask` holds s
//   selu   lambda alpha (e^x - 1), and lambda x above 0
//          (Klambauer et al., "Self-normalizing neural networks", 2017)
//   gelu   x (1 + erf(x / sqrt 2)) / 2, for every x (Hendrycks and Gimpel, 2016)
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum LeakyReLUType : int { kLeaky, kPReLU, kRReLU, kELU, kSELU, kGELU };

struct LeakyReLUParam : Parameter<LeakyReLUParam> {
  int act_type;
  float slope, lower_bound, upper_bound;
  static void Declare(Fields<LeakyReLUParam>& f) {
    f.Add("act_type", &LeakyReLUParam::act_type)
        .Enum({{"elu", kELU},
               {"gelu", kGELU},
               {"leaky", kLeaky},
               {"prelu", kPReLU},
               {"rrelu", kRReLU},
               {"selu", kSELU}})
        .Default(kLeaky)
        .Help("the function below zero");
    f.Add("slope", &LeakyReLUParam::slope).Default(0.25f).Help("slope of leaky and elu");
    f.Add("lower_bound", &LeakyReLUParam::lower_bound)
        .Range(0, 1)
        .Default(0.125f)
        .Help("smallest slope of rrelu");
    f.Add("upper_bound", &LeakyReLUParam::upper_bound)
        .Range(0, 1)
        .Default(0.334f)
        .Help("largest slope of rrelu");
  }
};

class LeakyReLUProperty final : public PropertyWithParam<LeakyReLUParam> {
 public:
  std::string TypeString() const override { return "LeakyReLU"; }
  std::string Description() const override { return "rectifiers with a nonzero part below zero"; }
  std::vector<std::string> ListArguments() const override;
  std::vector<std::string> ListOutputs() const override;
  std::string DefaultInit(int argument) const override {
    return argument == 1 ? R"(["constant", {"value": "0.25"}])" : "";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override;
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>& in_shape) const override;

  // The output has the sign of the input, so backward does not need the input.
  MXTRAIN_API bool GradientFromOutput() const;
  // gamma's shape, extended to the rank of the data.
  MXTRAIN_API static TShape ExpandGamma(const TShape& gamma, const TShape& data);

 protected:
  void Check() override;
};

}  // namespace mxtrain
