// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/point_box_loss/point_box_loss.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void PointBoxLossParam::Declare(Fields<PointBoxLossParam>& f) {
  using P = PointBoxLossParam;
  DeclareStrides(f, &P::strides);
  f.Add("candidates", &P::candidates)
      .Default(13)
      .Range(1, PointBoxLossProperty::kMostCandidates)
      .Help("points that are to find an object, at most");
  f.Add("score_power", &P::score_power)
      .Default(1.0f)
      .Range(0, 100)
      .Help("weight of the score when they are chosen");
  f.Add("overlap_power", &P::overlap_power)
      .Default(6.0f)
      .Range(0, 100)
      .Help("weight of the intersection over union when they are chosen");
  f.Add("focal_gamma", &P::focal_gamma)
      .Default(2.0f)
      .Range(0, 100)
      .Help("the higher, the less scores count that are nearly right; 0: cross-entropy");
  f.Add("box_weight", &P::box_weight)
      .Default(2.0f)
      .Range(0, 1e6)
      .Help("weight of the boxes beside the scores");
  DeclareBins(f, &P::bins);
  f.Add("distribution_weight", &P::distribution_weight)
      .Default(0.25f)
      .Range(0, 1e6)
      .Help("with bins, weight of the distributions beside the scores");
  f.Add("grad_scale", &P::grad_scale).Default(1.0f).Help("factor of the gradient");
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(point_box_loss, registry) {
  registry.AddProperty("PointBoxLoss", {},
                       [] { return std::make_unique<mxtrain::PointBoxLossProperty>(); });
}
