// SPDX-License-Identifier: Apache-2.0
#pragma once
// RegionLoss: the loss of what a net says of regions of interest (Girshick 2015, "Fast R-CNN",
// arXiv 1504.08083, equation 1), [N], one for each image. Ignores the head gradient, as all losses.
// Arguments:
//
//   scores   [N, R, classes + 1]      logits; the first is that of the background
//   offsets  [N, R, 4 (classes + 1)]  of the box of each class from the region, over the variances;
//                                     the first four, of the background, are not read
//   targets  [N, R, 5]                RegionTargets; a negative class: there is no region
//
//   L_i = N / max(S, 1) (sum cross-entropy of the scores + box_weight sum smooth L1 of the offsets
//                        of the class)
//
// over the regions of image i, and those of it that are to find an object; S is how many regions
// there are in all N images, so the mean of the losses is the sum over the batch, divided by S.
// Smooth L1 is x^2 / (2 beta) for |x| < beta, else |x| - beta / 2, of the differences to the
// targets, with beta = 1 / 9. Targets have no gradient.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct RegionLossParam : Parameter<RegionLossParam> {
  float box_weight, grad_scale;
  static void Declare(Fields<RegionLossParam>& f);
};

class RegionLossProperty final : public PropertyWithParam<RegionLossParam> {
 public:
  static constexpr double kBeta = 1.0 / 9;
  static constexpr int64_t kTargetColumns = 5;
  enum Argument : int { kScores, kOffsets, kTargets };

  std::string TypeString() const override { return "RegionLoss"; }
  std::string Description() const override {
    return "the loss of classes and boxes of regions of interest";
  }
  std::vector<std::string> ListArguments() const override {
    return {"scores", "offsets", "targets"};
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return in_data;
  }
  bool HasGradient(int argument) const override { return argument != kTargets; }
};

}  // namespace mxtrain
