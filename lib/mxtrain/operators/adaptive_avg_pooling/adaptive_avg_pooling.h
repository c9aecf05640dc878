// SPDX-License-Identifier: Apache-2.0
#pragma once
// AdaptiveAvgPooling2D: images [N, C, H, W] as means over a grid of h x w windows that cover them.
// Window i of an axis of length n that has k of them is [floor(i n / k), ceil((i + 1) n / k)).
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct AdaptiveAvgPoolingParam : Parameter<AdaptiveAvgPoolingParam> {
  TShape output_size;
  static void Declare(Fields<AdaptiveAvgPoolingParam>& f) {
    f.Add("output_size", &AdaptiveAvgPoolingParam::output_size)
        .Default(TShape::OfRank(0))
        .Help("windows (h, w); one number for both; () for 1, the mean of the whole image");
  }
};

class AdaptiveAvgPoolingProperty final : public PropertyWithParam<AdaptiveAvgPoolingParam> {
 public:
  std::string TypeString() const override { return "AdaptiveAvgPooling2D"; }
  std::string Description() const override {
    return "means over a grid of windows that cover the image, for an output of fixed size";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }

 protected:
  void Check() override;
};

}  // namespace mxtrain
